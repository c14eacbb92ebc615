"""Run directories as trainings leave them, made up in no time: figures mean nothing."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

from dreamgym import codec
from dreamgym.config import RunConfig, dump_toml, load_config
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

ENV = "twx/coin?numLocations=5"


def make_run(
    path: Path, *, command: str, settings: dict[str, object], result=None, rows=()
) -> Path:
    """Write a run directory."""
    path.mkdir(parents=True)
    given = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    config: RunConfig = load_config(preset=None, files=(), settings=given)
    (path / "config.toml").write_text(dump_toml(config))
    about = {"config_digest": "0", "version": "0.1.0", "command": f"dreamgym {command}"}
    (path / "run.json").write_text(json.dumps(about))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if result is not None:
        (path / "result.json").write_text(json.dumps({"command": command.split()[0], **result}))
    return path


def make_trial(path: Path, *, seed=0, world="real", algo="grpo", gate="off", steps=30, top=0.8,
               finished=True, **more) -> Path:  # fmt: skip
    """Write a training by trial whose success rises to about `top`."""
    rng = random.Random(f"{seed} {world} {algo} {top}")
    rows, online, looks = [], 0, []
    for step in range(steps + 1):
        level = 0.35 + (top - 0.35) * (1 - math.exp(-step / 9))
        row: dict[str, float] = {"step": step}
        if step:
            dreamt = level + (0.06 if world != "real" else 0.0)
            row |= {
                "reward/success": min(1.0, max(0.0, rng.gauss(dreamt, 0.04))),
                "groups/no_variance": rng.uniform(0.1, 0.4),
                "episodes/refused": 0.35 * math.exp(-step / 12),
                "episodes/length": 20 - 8 * level,
                "actor/entropy": 0.4 * math.exp(-step / 30),
                "actor/kl": 0.004 * step,
                "tasks/pool": 300.0,
            }
            online += 900 if world == "real" else 0
            if world != "real":
                row |= {
                    "episodes/unknown": float(rng.randrange(6)),
                    "tasks/value": rng.uniform(0.1, 0.2),
                    "tasks/synthetic_share": min(0.3, step / 60),
                }
                if step % 10 == 0:
                    row |= {"gap/precision": 0.95, "gap/dream_minus_real": 0.002 * step}
        if step:
            row["real/steps_online"] = float(online)
        if step % 10 == 0:
            sight = {"real/success": round(rng.gauss(level, 0.03), 2),
                     "real/success_greedy": round(rng.gauss(level - 0.05, 0.03), 2)}  # fmt: skip
            row |= sight
            looks.append({"step": step, **sight})
        rows.append(row)
    result = {
        "algo": algo, "env": ENV, "world": world, "seed": seed, "before": looks[0],
        "after": looks[-1], "looks": looks, "seconds": 700.0 + seed,
        "real_transitions": {"offline": 0 if world == "real" else 21724, "online": online,
                             "evaluation": 8000},
        "dream_transitions": 0 if world == "real" else 31000,
    }  # fmt: skip
    settings = {"train.algo": algo, "seed": seed, "rl.world": world, "rl.gate": gate,
                "rl.steps": steps, "policy.model": f"start-{seed}", **more}  # fmt: skip
    return make_run(path, command="train --algo " + algo, settings=settings, rows=rows,
                    result=result if finished else None)  # fmt: skip


def figure(mean, low=None, high=None, count=100):
    return {"mean": mean, "low": mean if low is None else low,
            "high": mean if high is None else high, "count": count}  # fmt: skip


def make_audit(path: Path, *, opened=True) -> Path:
    """Write an audit, its gate open or shut."""
    wanted = {"min_precision": 0.9, "max_false_success": 0.02, "min_refused": 0.97,
              "min_agreement": 0.9}  # fmt: skip
    result = {
        "env": ENV, "world": "dream",
        "gate": {"open": opened, "reasons": [] if opened else ["precision <is> too low"],
                 "thresholds": wanted},
        "on_policy": [{"policy": "start", "precision": figure(0.96, 0.91, 1.0, 46),
                       "gap": figure(0.01, -0.03, 0.05)}],
        "closed_loop": {"agreement": figure(0.97, 0.94, 0.99)},
        "one_step": {"invalid_refused": figure(0.99, 0.98, 1.0, 1012), "exact": figure(0.994),
                     "false_success": figure(None, count=0)},
    }  # fmt: skip
    return make_run(path, command="audit", settings={"audit.world": "dream"}, result=result)


def make_episode(name: str, *, won: bool, source=Source.REAL, goal="find the <coin>") -> Trajectory:
    """Make an episode of three turns."""
    task = Task(f"{ENV}#{name}", ENV, name, Split.DEV, goal=goal)
    last = StepResult(Observation("you hold a <coin>"), float(won), terminated=won, success=won)
    dreamt = source is Source.DREAM
    steps = [
        Step(Action("open fridge"), StepResult(Observation("an empty fridge")),
             reasoning="nothing was ever in it" if dreamt else None,
             references=("a#1", "b#2") if dreamt else ()),
        Step(Action("take moon"), StepResult(Observation("an empty fridge"), refused=True)),
        Step(Action("take coin"), last),
    ]  # fmt: skip
    return Trajectory(
        id=name, task=task, opening=Observation("a kitchen with a fridge"), steps=tuple(steps),
        stop=StopReason.TERMINATED if won else StopReason.STEP_LIMIT,
        provenance=Provenance(source, "policy"),
    )  # fmt: skip


def make_evaluation(path: Path, *, policy="runs/start", mean=0.5) -> Path:
    """Write an evaluation with episodes."""
    result = {
        "env": ENV, "split": "test", "policy": policy, "transitions": 1200,
        "success": {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "episodes": 100},
    }  # fmt: skip
    made = make_run(path, command="eval", settings={"eval.policy": policy}, result=result)
    episodes = [make_episode("1", won=False), make_episode("2", won=True),
                make_episode("3", won=True, source=Source.DREAM)]  # fmt: skip
    codec.write_lines(path / "episodes.jsonl", episodes)
    return made


def make_fit(path: Path, *, kind="fit", seed=0, **more) -> Path:
    """Write a fit, a clone or a run of preferences."""
    words = {"fit": "fit", "sft": "train --algo sft", "dpo": "train --algo dpo"}[kind]
    names = {
        "fit": ("fit/held_out", "fit/held_out_state_exact"),
        "sft": ("sft/held_out", "sft/held_out_exact"),
        "dpo": ("dpo/held_out_margin", "dpo/held_out_accuracy"),
    }[kind]
    rows = [{"step": step, names[0]: 2 / step, names[1]: 1 - 1 / step} for step in range(1, 30, 4)]
    result = {"env": ENV, "real_transitions": {"offline": 5000, "online": 0}, "seconds": 300.0,
              "parameters": 900_000}  # fmt: skip
    settings = {"seed": seed, **({} if kind == "fit" else {"train.algo": kind}), **more}
    return make_run(path, command=words, settings=settings, rows=rows, result=result)
