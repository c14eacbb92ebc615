"""What a training in rounds consists of: `round-1`, `dream-2`, `audit-2`, `round-2` and so on.

Values only. What comes next is read off the results that are there, so a run that was cut off and
one that was not decide alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dreamgym import dreams
from dreamgym.audit import check_gate, read_audit
from dreamgym.config import RunConfig, load_config
from dreamgym.errors import ConfigError
from dreamgym.experience.card import load_card
from dreamgym.jobs.audit import thresholds_of
from dreamgym.jobs.stages import STORE, Stage
from dreamgym.types import derive_seed


@dataclass(frozen=True, slots=True)
class RoundsPlan:
    """What the stages are made from."""

    config: RunConfig
    """Of the whole training."""
    remembered: Path
    """The store of the first dream, which nobody changes."""
    fit: RunConfig
    """How the first dream was fitted."""
    audit: RunConfig | None
    """How it was audited; None where no gate is asked for."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A round that is over."""

    number: int
    result: Mapping[str, Any]

    @property
    def turn(self) -> Mapping[str, Any] | None:
        """Why practice in the dream ended before its time, or went on for real."""
        turns = self.result["turns"]
        return turns[0] if turns else None

    @property
    def dream_steps(self) -> int:
        """Steps that were made in the dream."""
        return int(self.turn["step"] if self.turn else self.result["steps"])

    @property
    def online(self) -> int:
        """Real transitions that were practised on."""
        return int(self.result["real_transitions"]["online"])

    @property
    def watched(self) -> int:
        """Real transitions of dreams that were told again."""
        return int(self.result["real_transitions"]["evaluation_watch"])


def read_plan(config: RunConfig) -> RoundsPlan:
    """Read how dream and audit were made. Raises `ConfigError` where they cannot be made again."""
    world, gate = Path(config.rl.world), config.rl.gate
    card = load_card(world)
    audit = None
    if gate and gate != "off":
        place = Path(gate)
        audit = _settings_of(place if place.is_dir() else place.parent, "audited")
        data = Path(audit.audit.data).absolute()
        if not data.exists():
            raise ConfigError(f"the audit in {gate} was made with {data}, which is gone")
        audit = replace(audit, audit=replace(audit.audit, data=str(data)))
    return RoundsPlan(config, Path(card.store), _settings_of(world, "fitted"), audit)


def _settings_of(folder: Path, done: str) -> RunConfig:
    path = folder / "config.toml"
    if not path.is_file():
        raise ConfigError(
            f"between rounds a dream is {done} again as it was before, but {folder} does not say "
            "how: there is no config.toml. Train with rl.rounds=1"
        )
    return load_config(files=[path])


def next_stage(plan: RoundsPlan, root: Path) -> Stage | None:
    """Return what is to be done next, or None where the training is over."""
    past: list[Ended] = []
    for number in range(1, plan.config.rl.rounds + 1):
        for stage in _mending(plan, root, number):
            if not is_finished(root / stage.name):
                return stage
        if gate_reasons(plan, root, number):
            return None
        if not is_finished(root / f"round-{number}"):
            return _round(plan, root, number, past)
        past.append(Ended(number, read_result(root / f"round-{number}")))
        if not _goes_on(plan, past):
            return None
    return None


def _goes_on(plan: RoundsPlan, past: Sequence[Ended]) -> bool:
    """Return whether another round follows: an alarm or reality ended the last, and taught us."""
    last = past[-1]
    taught = last.turn is not None and last.online + last.watched > 0
    return taught and _steps_left(plan, past) > 0


def _steps_left(plan: RoundsPlan, past: Sequence[Ended]) -> int:
    return plan.config.rl.steps - sum(one.dream_steps for one in past)


def _mending(plan: RoundsPlan, root: Path, number: int) -> tuple[Stage, ...]:
    """Return what comes before a round: a dream that learns on, and its audit."""
    if number == 1:
        return ()
    learnt, dream = plan.fit, dream_of(plan, root, number)
    fit = replace(
        learnt.fit,
        model=str(dream_of(plan, root, number - 1) / dreams.MODEL),
        steps=plan.config.rl.refit_steps,
        # What is new came last: a limit on what is learnt would leave out just that.
        transitions=0,
    )
    stages = [
        Stage(dream.name, "fit the dream again, with what was made for real", "fit",
              replace(learnt, fit=fit, replay=replace(learnt.replay, store=str(root / STORE)))),
    ]  # fmt: skip
    if plan.audit is not None:
        wanted = replace(
            plan.audit.audit, world=str(dream), policies=str(root / f"round-{number - 1}")
        )
        own = replace(plan.audit, audit=wanted, replay=replace(plan.audit.replay, store=""))
        about = "audit the new dream: may one train in it?"
        stages.append(Stage(f"audit-{number}", about, "audit", own))
    return tuple(stages)


def _round(plan: RoundsPlan, root: Path, number: int, past: Sequence[Ended]) -> Stage:
    """Return a round, with its part of what is left of the budgets."""
    config, name = plan.config, f"round-{number}"
    rl, steps = config.rl, _steps_left(plan, past)
    real, left = rl.then_real - sum(one.online for one in past), rl.rounds - number + 1
    if rl.then_real:
        steps, real = -(-steps // left), -(-real // left)
    dreamt = replace(
        rl, rounds=1, steps=steps, then_real=real, world=str(dream_of(plan, root, number)),
        gate=rl.gate if plan.audit is None or number == 1 else str(root / f"audit-{number}"),
        store=str(root / name / STORE),
    )  # fmt: skip
    own = replace(config, rl=dreamt)
    if number > 1:
        # Other seeds, so that the watch plays tasks that the dream was not just mended with.
        own = replace(
            own,
            policy=replace(config.policy, model=str(root / f"round-{number - 1}")),
            seed=derive_seed(config.seed, "round", number),
        )
    return Stage(name, f"learn by trial in the dream, round {number}", "rl", own)


def dream_of(plan: RoundsPlan, root: Path, number: int) -> Path:
    """Return where the dream of a round lies."""
    return root / f"dream-{number}" if number > 1 else Path(plan.config.rl.world)


def gate_reasons(plan: RoundsPlan, root: Path, number: int) -> tuple[str, ...]:
    """Return why nobody may train in the dream of a round that was fitted again."""
    if number == 1 or plan.audit is None:
        return ()
    found = read_audit(root / f"audit-{number}")
    return check_gate(found, thresholds_of(plan.config.audit))


def is_finished(folder: Path) -> bool:
    """Return whether a stage has its result."""
    return (folder / "result.json").is_file()


def read_result(folder: Path) -> dict[str, Any]:
    """Return the result of a finished stage."""
    found: dict[str, Any] = json.loads((folder / "result.json").read_text("utf-8"))
    return found
