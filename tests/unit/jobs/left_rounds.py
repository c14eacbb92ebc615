"""Trainings in rounds as they were left: settings and results of stages, made up."""

import json
from pathlib import Path

from dreamgym.config import AuditConfig, RunConfig, load_config
from dreamgym.jobs.rounds_plan import RoundsPlan

ALARM = "precision: 0.500 of 12 successes in the dream are real, at least 0.85 is needed"


def plan(*more, gated=True):
    repair = ["rl.world='/d/dream'", "rl.rounds=3", "rl.watch='stop'", "rl.steps=30",
              "train.algo='grpo'", "policy.model='/d/start'", "seed=7"]  # fmt: skip
    gate = f"rl.gate='{'/d/audit' if gated else 'off'}'"
    learnt = load_config(settings=["fit.transitions=900", "dream.references=5", "seed=3"])
    audited = RunConfig(audit=AuditConfig(world="/d/dream", data="/d/held", episodes=11))
    return RoundsPlan(
        load_config(settings=[*repair, gate, *more]),
        Path("/d/store.sqlite"),
        learnt,
        audited if gated else None,
    )


def leave(root, name, **result):
    (root / name).mkdir(exist_ok=True)
    (root / name / "result.json").write_text(json.dumps(result))


def leave_round(root, number, *, steps, why="", to="end", dreamt=None, online=0, watched=90):
    """Leave a round that made so many steps, `dreamt` of them in the dream."""
    turns = [{"step": dreamt or steps, "why": why, "to": to, "weights": 0}] if why else []
    counts = {"offline": 500, "online": online, "evaluation": 120, "evaluation_watch": watched}
    leave(root, f"round-{number}", steps=steps, turns=turns, real_transitions=counts, env="stairs",
          before={"real/success": 0.1}, after={"real/success": 0.2}, dream_transitions=1000,
          watch=[{"step": 5, "gap/precision": 0.5, "gap/alarm": 1.0}])  # fmt: skip


def leave_dream(root, number, *, precision=None):
    leave(root, f"dream-{number}", real_transitions={"offline": 590})
    if precision is not None:
        figure = {"mean": precision, "count": 20}
        one = {"precision": figure, "gap": {"mean": 0.0}, "unknown": 0, "failed": 0, "episodes": 9}
        step = {"false_success": {"mean": 0.0}, "invalid_refused": {"mean": 1.0}}
        loop = {"agreement": {"mean": 1.0}, "unknown": 0, "failed": 0, "episodes": 9}
        leave(root, f"audit-{number}", one_step=step, closed_loop=loop, on_policy=[one],
              cost={"real_steps": 40})  # fmt: skip
