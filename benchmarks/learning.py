"""Does an agent that learnt in a dream do better for real? Every arm, several seeds.

    python benchmarks/learning.py --out runs/learning --env coin8 --seed 0 1 2 3 4

For each environment and seed: collect experience, clone a weak policy from few demonstrations,
record how it plays the same tasks, fit an experience model, audit it; then learn by trial from that
policy, for real and in the dream, and play the test split for real, 200 tasks that nothing was
chosen by. Every stage is a `dreamgym` command, printed as it runs; a stage that has its result is
not repeated, so the script can be killed and started again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from fidelity import run, settings

from dreamgym.eval.seeds import across_seeds


@dataclass(frozen=True, slots=True)
class Setting:
    """An environment, and how hard it is made."""

    spec: str
    turns: int
    """After which an episode is cut off."""
    recorded: int
    """Turns of recorded episodes."""
    demos: int
    updates: int
    """Of the clone: few, since the start is to be weak."""
    fit: tuple[str, ...] = ("fit.steps=400",)
    rl: tuple[str, ...] = ("rl.groups=16", "rl.steps=20", "rl.learning_rate=5e-4", "rl.kl=0")


SETTINGS = {
    "coin8": Setting(
        "twx/coin?numLocations=8&includeDoors=0", turns=15, recorded=20, demos=3, updates=10
    ),
}
ARMS = {
    "grpo real": ("grpo", "real"),
    "ppo real": ("ppo", "real"),
    "grpo dream": ("grpo", "dream"),
    "ppo dream": ("ppo", "dream"),
    "sft longer": ("sft", "the same demonstrations, 200 updates"),
    "sft more": ("sft", "40 demonstrations, 200 updates"),
}


def clone(here: Path, seed: int, demos: int, updates: int, out: str) -> list[str]:
    """Return the command that clones a policy."""
    return [
        "train", "--algo", "sft", "--store", str(here / "experience.sqlite"), "--seed", str(seed),
        "--demos", str(demos), "--steps", str(updates),
        *settings("train.threads=1", "policy.choose=known", "policy.mark_seen=true"),
        "--out", str(here / out),
    ]  # fmt: skip


def grounds(setting: Setting, seed: int, here: Path) -> list[list[str]]:
    """Return the commands that come before any learning by trial."""
    store, held = str(here / "experience.sqlite"), str(here / "held_out.sqlite")
    collect = ["collect", "--env", setting.spec, "--seed", str(seed),
               *settings(f"collect.max_steps={setting.recorded}")]  # fmt: skip
    dev = ["--split", "dev", "--tasks", "100"]
    return [
        [*collect, "--policy", "mixed", "--tasks", "200", "--episodes", "1000",
         "--store", store, "--out", str(here / "collect")],
        [*collect, "--policy", "random", *dev, "--episodes", "500",
         "--store", store, "--out", str(here / "walks")],
        [*collect, "--policy", "mixed", *dev, "--episodes", "150", "--seed", str(seed + 100),
         "--store", held, "--out", str(here / "held")],
        clone(here, seed, setting.demos, setting.updates, "warm"),
        [*collect, "--policy", str(here / "warm"), "--tasks", "200", "--episodes", "1000",
         "--store", store, "--out", str(here / "own")],
        ["fit", "--store", store, "--seed", str(seed), "--out", str(here / "dream"),
         *settings("fit.threads=1", *setting.fit)],
        ["audit", "--world", str(here / "dream"), "--data", held, "--policy", str(here / "warm"),
         "--episodes", "60", "--seed", str(seed), "--out", str(here / "audit"),
         *settings("audit.policy_episodes=100", f"audit.max_steps={setting.turns}")],
        judge(setting, here, "warm"),
    ]  # fmt: skip


def judge(setting: Setting, here: Path, run_name: str) -> list[str]:
    """Return the command that plays the test split."""
    return ["eval", "--env", setting.spec, "--policy", str(here / run_name), "--split", "test",
            "--episodes", "200", *settings(f"eval.max_steps={setting.turns}"),
            "--out", str(here / f"test-{run_name}")]  # fmt: skip


def learning(setting: Setting, seed: int, here: Path, arm: str, more: list[str]) -> list[str]:
    """Return the command of one arm."""
    algo, world = ARMS[arm]
    out = arm.replace(" ", "-")
    if algo == "sft":
        return clone(here, seed, setting.demos if arm == "sft longer" else 40, 200, out)
    where = ["real"] if world == "real" else [str(here / "dream"), "--gate", str(here / "audit")]
    return ["train", "--algo", algo, "--from", str(here / "warm"), "--world", *where,
            "--seed", str(seed), "--out", str(here / out),
            *settings(f"rl.max_steps={setting.turns}", "rl.threads=1", "rl.eval_episodes=100",
                      *setting.rl, *more)]  # fmt: skip


def row(env: str, seed: int, here: Path, arm: str) -> dict[str, object]:
    """Return what came of one arm."""

    def read(part: str) -> dict[str, object]:
        found: dict[str, object] = json.loads((here / part / "result.json").read_text())
        return found

    out = arm.replace(" ", "-")
    learnt, before, after = read(out), read("test-warm"), read(f"test-{out}")
    used = learnt.get("real_transitions") or {}
    return {
        "env": env, "arm": arm, "seed": seed,
        "before": before["success"]["mean"], "after": after["success"]["mean"],
        "refused before": round(before["refused_share"], 3),
        "offline": used.get("offline"), "online": used.get("online", 0),
        "looks": used.get("evaluation", 0), "seconds": round(learnt["seconds"]),
    }  # fmt: skip


def summary(rows: list[dict[str, object]], arm: str) -> str:
    """Return the mean rise over seeds with its 95 % t interval."""
    own = [row for row in rows if row["arm"] == arm]
    rise = across_seeds([float(one["after"]) - float(one["before"]) for one in own])
    after = across_seeds([float(one["after"]) for one in own])
    return f"{arm}: rises by {rise} to {after.mean:.3f}, {rise.seeds} seeds"


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/learning"))
    parser.add_argument("--env", nargs="+", default=["coin8"], choices=list(SETTINGS))
    parser.add_argument("--seed", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--arm", nargs="*", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--rl", nargs="*", default=[], help="settings of learning, rl.steps=30")
    asked = parser.parse_args()
    for env in asked.env:
        rows, setting = [], SETTINGS[env]
        for seed in asked.seed:
            here = asked.out / f"{env}-{seed}"
            for words in grounds(setting, seed, here):
                run(words)
            for arm in asked.arm:
                run(learning(setting, seed, here, arm, asked.rl))
                run(judge(setting, here, arm.replace(" ", "-")))
                rows.append(row(env, seed, here, arm))
                print(json.dumps(rows[-1]), flush=True)
        for arm in asked.arm:
            print(env, summary(rows, arm))


if __name__ == "__main__":
    main()
