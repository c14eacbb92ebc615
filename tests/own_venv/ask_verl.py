"""Compute advantages and losses with verl's own functions, in a virtual environment of verl's own.

    python tests/own_venv/ask_verl.py QUESTIONS ANSWERS

Both are files of tensors by name. verl comes without most of what it asks for (it wants another
transformers than ours): with what the import of `verl.trainer.ppo.core_algos` needs, and our torch.
"""

from __future__ import annotations

import os
import subprocess
import sys

from own_venvs import CANNOT_INSTALL, ready_venv

INSTALLS = (
    ("ray==2.60.0", "hydra-core==1.3.8", "codetiming==1.4.0", "tensordict==0.10.0"),
    ("--no-deps", "verl==0.9.1"),
)
MODES = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")


def main() -> int:
    questions, answers, *inside = sys.argv[1:]
    if inside:
        answer(questions, answers)
        return 0
    try:
        python = ready_venv("verl", INSTALLS, see_ours=True)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"cannot install verl: {error}\n")
        return CANNOT_INSTALL
    os.execv(python, [str(python), "-W", "ignore", __file__, questions, answers, "--inside"])


def answer(questions: str, answers: str) -> None:
    """Read tensors, apply verl's functions, write what they say."""
    import torch
    from verl.trainer.ppo import core_algos as verl
    from verl.workers.config import FSDPActorConfig

    q = torch.load(questions)
    rewards, mask, index = q["rewards"], q["mask"], q["index"].numpy()
    found = {
        "grpo": verl.compute_grpo_outcome_advantage(rewards, mask, index)[0],
        "grpo without std": verl.compute_grpo_outcome_advantage(
            rewards, mask, index, norm_adv_by_std_in_grpo=False
        )[0],
        "rloo": verl.compute_rloo_outcome_advantage(rewards, mask, index)[0],
    }
    gamma, lam = q["gamma"].item(), q["lam"].item()
    gae = verl.compute_gae_advantage_return(rewards, q["values"], mask, gamma, lam)
    found["gae"], found["gae returns"] = gae
    low, high, dual = q["clip"].tolist()
    for mode in MODES:
        config = FSDPActorConfig(
            strategy="fsdp", clip_ratio=low, clip_ratio_low=low, clip_ratio_high=high,
            clip_ratio_c=dual, rollout_n=1, ppo_micro_batch_size_per_gpu=1,
        )  # fmt: skip
        loss, figures = verl.compute_policy_loss_vanilla(
            q["old"], q["new"], q["advantages"], mask, mode, config
        )
        found[f"policy {mode}"] = loss
        found["clip_frac"] = torch.tensor(figures["actor/pg_clipfrac"])
        found["clip_frac_lower"] = torch.tensor(figures["actor/pg_clipfrac_lower"])
        value_loss, share = verl.compute_value_loss(
            q["predicted"], q["returns"], q["values"], mask, q["value_clip"].item(), mode
        )
        found[f"value {mode}"], found["value_clip_frac"] = value_loss, share
    for kind in ("k1", "k2", "k3"):
        found[kind] = verl.kl_penalty(q["new"], q["old"], kind)
    found["entropy"] = verl.compute_entropy_loss(q["logits"], mask)
    torch.save(found, answers)


if __name__ == "__main__":
    sys.exit(main())
