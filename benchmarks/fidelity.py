"""May one train in these dreams? The whole way, several environments, several seeds.

    python benchmarks/fidelity.py --out runs/fidelity --env coin map cook alfworld --seed 0 1 2

For each environment and seed: collect experience, warm-start a policy from few demonstrations, fit
an experience model, audit it on held-out tasks. Every stage is a `dreamgym` command, printed as it
runs; a stage that has its result is not repeated, so the script can be killed and started again.
The fit never sees a held-out task. The dream's memory holds random walks of them and nothing else.
Rules and settings were chosen by looking at dev tasks; `--judge test` audits the same dreams again
on test tasks, which nothing was chosen by (their random walks go into a copy of the record).
Where `Setting.own` says so, the warm-started policy's own episodes on train tasks join the record.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dreamgym.bench.place import POINTING
from dreamgym.replay import ExperienceStore, open_store
from dreamgym.types import Split, Trajectory

DREAMGYM = str(Path(sys.executable).with_name("dreamgym"))


@dataclass(frozen=True, slots=True)
class Setting:
    """An environment, and how much of what is recorded and learnt there."""

    spec: str
    steps: int
    """After which an episode is cut off."""
    tasks: int = 300
    episodes: int = 1500
    own: int = 0
    """Episodes of the warm-started policy itself that join the record before the fit."""
    clone: tuple[str, ...] = ()
    fit: tuple[str, ...] = ()
    dream: tuple[str, ...] = ()
    """How it is dreamt: settings that nothing is fitted for."""


ENVS = {
    "coin": Setting("twx/coin?numLocations=5&includeDoors=0", 20),
    "map": Setting(
        "twx/mapreader?numLocations=6&maxDistanceApart=3&maxDistractorItemsPerLocation=1"
        "&includeDoors=0",
        25,
    ),
    "cook": Setting(
        "twx/cookingworld?numLocations=3&numIngredients=2&numDistractorItems=2&includeDoors=0",
        30,
    ),
    "kitchen": Setting(
        "twx/cookingworld?numLocations=1&numIngredients=1&numDistractorItems=1&includeDoors=0",
        20,
        own=600,
        clone=("policy.choose=known", "policy.mark_seen=true"),
        fit=("fit.steps=700", *POINTING),
    ),
    "twc": Setting(
        "twx/twc?numLocations=1&numItemsToPutAway=1&fold=train",
        14,
        tasks=1000,
        episodes=2000,
        own=1000,
        clone=("policy.choose=known", "train.steps=120"),
        fit=("fit.steps=600", "fit.ending_share=0.3", *POINTING),
        dream=("dream.known_wins=true", "dream.known_losses=true"),
    ),
    "twc-folds": Setting("twx/twc?numLocations=1&numItemsToPutAway=1", 14),
    "simon": Setting(
        "twx/simonsays?gameLength=4&numDistractors=2&memorization=1&verbose=1&fold=train", 8
    ),
    "alfworld": Setting(
        "alfworld/generated?size=small",
        40,
        own=600,
        clone=("policy.choose=known", "policy.mark_seen=true", "train.steps=120"),
        fit=("fit.steps=800", "fit.ending_share=0.15", *POINTING),
    ),
}


STAGES = ("collect", "walks", "held", "warm", "own", "dream", "audit")


def stages(name: str, seed: int, folder: Path, more: list[str], demos: int) -> list[list[str]]:
    """Return the commands for one environment and seed, in order."""
    wanted, here = ENVS[name], folder / f"{name}-{seed}"
    store, held = str(here / "experience.sqlite"), str(here / "held_out.sqlite")
    limit = f"collect.max_steps={wanted.steps}"
    collect = ["collect", "--env", wanted.spec, "--set", limit]
    tasks = ["--tasks", str(wanted.tasks)]
    dev = ["--split", "dev", "--tasks", "100"]
    policy, dream = str(here / "warm"), str(here / "dream")
    own = [[*collect, "--policy", policy, *tasks, "--episodes", str(wanted.own),
            "--split", "train", "--seed", str(seed), "--store", store,
            "--out", str(here / "own")]] if wanted.own else []  # fmt: skip
    return [
        [*collect, "--policy", "mixed", *tasks, "--episodes", str(wanted.episodes),
         "--seed", str(seed), "--store", store, "--out", str(here / "collect")],
        [*collect, "--policy", "random", *dev, "--episodes", "500", "--seed", str(seed),
         "--store", store,
         "--out", str(here / "walks")],
        [*collect, "--policy", "mixed", *dev, "--episodes", "150", "--seed", str(seed + 100),
         "--store", held, "--out", str(here / "held")],
        ["train", "--algo", "sft", "--store", store, "--demos", str(demos), "--seed", str(seed),
         *settings("train.threads=1", *wanted.clone), "--out", policy],
        *own,
        ["fit", "--store", store, "--seed", str(seed), "--out", dream,
         *settings("fit.threads=1", *wanted.fit), *more],
        ["audit", "--world", dream, "--data", held, "--policy", policy, "--episodes", "150",
         *settings("audit.policy_episodes=100", f"audit.max_steps={wanted.steps}", *wanted.dream),
         "--seed", str(seed), "--out", str(here / "audit")],
    ]  # fmt: skip


def on_test(name: str, seed: int, folder: Path) -> list[list[str]]:
    """Return the commands that audit a fitted dream on test tasks."""
    wanted, here = ENVS[name], folder / f"{name}-{seed}"
    held = here / "held_out-test.sqlite"
    # A store that lets test tasks in must be made so: those of training never do.
    memory = store_of(
        here,
        here / "experience-test.sqlite",
        lambda old: old.trajectories(split=Split.TRAIN),
        allow_test=True,
    )
    held_out = settings(f"collect.max_steps={wanted.steps}", "replay.held_out=true")
    collect = ["collect", "--env", wanted.spec, *held_out, "--split", "test", "--tasks", "100"]
    return [
        [*collect, "--policy", "random", "--episodes", "500", "--seed", str(seed),
         "--store", str(memory), "--out", str(here / "walks-test")],
        [*collect, "--policy", "mixed", "--episodes", "150", "--seed", str(seed + 100),
         "--store", str(held), "--out", str(here / "held-test")],
        ["audit", "--world", str(here / "dream"), "--store", str(memory), "--data", str(held),
         "--split", "test", "--policy", str(here / "warm"), "--episodes", "150",
         *settings("audit.policy_episodes=100", f"audit.max_steps={wanted.steps}", *wanted.dream),
         "--seed", str(seed), "--out", str(here / "audit-test")],
    ]  # fmt: skip


def store_of(
    here: Path,
    path: Path,
    chosen: Callable[[ExperienceStore], Iterable[Trajectory]],
    *,
    allow_test: bool = False,
) -> Path:
    """Return a store of chosen episodes of a study's record, made unless it is there."""
    if not path.exists():
        half = path.with_suffix(".part")
        half.unlink(missing_ok=True)
        with (
            open_store(here / "experience.sqlite") as old,
            open_store(half, allow_test=allow_test) as new,
        ):
            new.add(chosen(old))
        half.rename(path)
    return path


def settings(*words: str) -> list[str]:
    """Return settings as words of a command."""
    return [word for setting in words for word in ("--set", setting)]


def run(words: list[str]) -> None:
    """Run one stage, unless it has its result."""
    out = Path(words[words.index("--out") + 1])
    if (out / "result.json").exists():
        return
    can_resume = words[0] in ("collect", "fit", "train") and out.exists()
    command = [*words, "--resume"] if can_resume else words
    print("dreamgym", shlex.join(command), flush=True)
    subprocess.run([DREAMGYM, *command], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip


def row(name: str, seed: int, folder: Path, *, audit_run: str) -> dict[str, object]:
    """Return the figures of one audit."""
    here = folder / f"{name}-{seed}"
    audit, fit = (
        json.loads((here / part / "result.json").read_text()) for part in (audit_run, "dream")
    )
    one, loop = audit["one_step"], audit["closed_loop"]
    policy = audit["on_policy"][0]

    def mean(figure: dict[str, float]) -> object:
        return None if figure["mean"] is None else round(figure["mean"], 3)

    return {
        "env": name,
        "seed": seed,
        "lessons": fit["real_transitions"]["offline"],
        "fit s": round(fit["seconds"]),
        "exact": mean(one["exact"]),
        "false success": mean(one["false_success"]),
        "invalid refused": mean(one["invalid_refused"]),
        "valid refused": mean(one["valid_refused"]),
        "agreement": mean(loop["agreement"]),
        "loop unknown": loop["unknown"],
        "precision": mean(policy["precision"]),
        "recall": mean(policy["recall"]),
        "dream": mean(policy["dream_success"]),
        "real": mean(policy["real_success"]),
        "gap": mean(policy["gap"]),
        "unknown": policy["unknown"],
        "failed": policy["failed"],
        "gate": "open" if audit["gate"]["open"] else "shut",
    }


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/fidelity"))
    parser.add_argument("--env", nargs="+", default=list(ENVS), choices=list(ENVS))
    parser.add_argument("--seed", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--demos", type=int, default=40)
    parser.add_argument("--until", default="audit", choices=STAGES, help="the last stage")
    parser.add_argument("--fit", nargs="*", default=[], help="settings of the fit, fit.steps=800")
    parser.add_argument("--judge", default="dev", choices=["dev", "test"], help="on which tasks")
    asked = parser.parse_args()
    more = settings(*asked.fit)
    rows = []
    for name in asked.env:
        for seed in asked.seed:
            for words in stages(name, seed, asked.out, more, asked.demos):
                stage = Path(words[words.index("--out") + 1]).name
                if STAGES.index(stage) > STAGES.index(asked.until):
                    break
                run(words)
            if asked.until != "audit":
                continue
            if asked.judge == "test":
                for words in on_test(name, seed, asked.out):
                    run(words)
            audit_run = "audit" if asked.judge == "dev" else "audit-test"
            rows.append(row(name, seed, asked.out, audit_run=audit_run))
            print(json.dumps(rows[-1]), flush=True)
    if not rows:
        return
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for found in rows:
        print("| " + " | ".join(map(str, found.values())) + " |")


if __name__ == "__main__":
    main()
