"""What rules read off a record are worth on held-out episodes, with no model at all.

    python benchmarks/rules.py STUDY [STUDY...]

A study is a folder of `benchmarks/fidelity.py`: `experience.sqlite` to learn from (train tasks),
and `held_out.sqlite`. "candidates": how many a policy with 40 demonstrations would choose among,
the share of them that the engine accepts, and the share of accepted actions of known kinds that are
among them. "out-of-place", "never-together" and "goal-unmet" by themselves: refusals that are
caught, accepted steps that are refused; steps that achieved nothing and are denied, successes that
are denied (before the step is made, and with the state that it led to).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dreamgym.experience.affordances import learn_affordances
from dreamgym.experience.grounding import KnownKinds
from dreamgym.experience.phrases import cut
from dreamgym.experience.roles import pairing, situation
from dreamgym.replay import open_store
from dreamgym.train.demonstrations import choose_demonstrations
from dreamgym.train.renaming import find_names
from dreamgym.types import Split, Trajectory, Transition

DEMONSTRATIONS = 40


def read(path: Path, split: Split) -> list[Trajectory]:
    """Return the recorded episodes of a split."""
    with open_store(path) as store:
        return list(store.trajectories(split=split))


def candidates(recorded: list[Trajectory], held: list[Trajectory]) -> str:
    """Return number, accepted share and coverage of the candidates of held-out states."""
    demos = choose_demonstrations(recorded, behaviour="expert", count=DEMONSTRATIONS, seed=0)
    known = learn_affordances(demos, find_names(recorded).classes, recorded=recorded)
    kinds = {frame.kind for frame in known.frames}
    states = offered = accepted = wanted = covered = 0
    for one in held:
        before = [one.opening, *(step.result.observation for step in one.steps)]
        for now, step in zip(before, one.steps, strict=False):
            if not now.admissible:
                continue
            found = known.candidates(now.text)
            states, offered = states + 1, offered + len(found)
            accepted += len(set(found) & set(now.admissible))
            if step.action.text in now.admissible and cut(step.action.text).kind in kinds:
                wanted, covered = wanted + 1, covered + (step.action.text in found)
    return f"{offered / states:.1f} | {accepted / offered:.3f} | {covered}/{wanted}"


def rules(known: KnownKinds, steps: list[Transition]) -> str:
    """Return what each rule catches, and what it should not have caught."""

    def caught(some: list[Transition]) -> str:
        stands = (
            situation(one.state, one.action, known.layout) in known.out_of_place for one in some
        )
        pairs = (pairing(one.action) in known.never_together for one in some)
        return f"{sum(stands)}+{sum(pairs)}/{len(some)}"

    def denied(some: list[Transition]) -> str:
        before = [bool(known.goals.lacking(one.goal, one.state, one.action)) for one in some]
        after = [bool(known.goals.unmet(one.goal, one.next_state)) for one in some]
        either = sum(map(max, before, after))
        return f"{sum(before)}, {either}/{len(some)}"

    won = [one for one in steps if one.success]
    kinds = {cut(one.action).kind for one in won}
    rest = [one for one in steps if not (one.success or one.refused)]
    alike = [one for one in rest if cut(one.action).kind in kinds]
    refused = [one for one in steps if one.refused]
    return f"{caught(refused)} | {caught([*won, *rest])} | {denied(alike)} | {denied(won)}"


def main() -> None:
    """Print a row for each study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, nargs="+")
    print("| study | candidates | accepted | covered | refusals caught | accepted steps refused | "
          "others denied success | successes denied |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for study in parser.parse_args().study:
        recorded = read(study / "experience.sqlite", Split.TRAIN)
        held = read(study / "held_out.sqlite", Split.DEV)
        known = KnownKinds.from_transitions(step for one in recorded for step in one.transitions())
        steps = [step for one in held for step in one.transitions()]
        row = f"{candidates(recorded, held)} | {rules(known, steps)}"
        print(f"| {study.name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
