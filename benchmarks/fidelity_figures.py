"""The paper's Figures 4 and 5 in small, and what each check is worth.

    python benchmarks/fidelity.py --out runs/fidelity --until dream     # records, policies, dreams
    python benchmarks/fidelity_figures.py --out runs/fidelity data ablation checks second mix memory

`data`: audit figures against the number of recorded steps, for two model sizes (Figure 5); what is
not among them is not in the dream's memory either, but for the random walks of held-out tasks.
`ablation`: full, without history, reasoning, references (Figure 4). `checks`: the same dream with
one check off, or with more pessimism; nothing is fitted anew. `second`: the same dream with another
seed's beside it that must agree. `mix`: what the offline mix is made of: as recorded, with rollouts
of the warm-started policy on train tasks (counted as offline, as all recorded steps are; only for
environments whose records hold none yet, see `fidelity.ENVS`), with as
many more episodes of the usual mix, and with other shares of refused steps. `memory`: the same
dream, remembering fewer or more random walks of each held-out task; nothing is fitted anew. Stages
with a result are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from fidelity import ENVS, run, settings, store_of

from dreamgym.replay import ExperienceStore, copy_store
from dreamgym.types import Split, Trajectory

DATA = (250, 1000, 4000, 16000)
ABLATIONS = {
    "full": [],
    "no history": ["dream.history=false"],
    "no reasoning": ["dream.reasoning=false"],
    "no references": ["dream.references=0"],
    "few refusals": ["fit.refused_share=0.1"],
}
CHECKS = {
    "all checks": [],
    "any end": ["dream.known_wins=false", "dream.known_losses=false"],
    "known wins": ["dream.known_wins=true", "dream.known_losses=false"],
    "known wins and losses": ["dream.known_wins=true", "dream.known_losses=true"],
    "no grounding": ["dream.grounding=false"],
    "no ledger": ["dream.ledger=false"],
    "neither": ["dream.grounding=false", "dream.ledger=false"],
    "known pages only": ["dream.known_pages=true"],
    "sure of 0.3": ["dream.min_confidence=0.3"],
    "sure of 0.6": ["dream.min_confidence=0.6"],
    "alike 0.7": ["dream.min_similarity=0.7"],
    "alike 0.9": ["dream.min_similarity=0.9"],
}
STUDIES = ("data", "ablation", "checks", "second", "mix", "memory")
WALKS = (0, 1, 2, 5, 10, 20)
"""Random walks of each held-out task that a dream remembers."""
HELD_OUT_TASKS = 100
RECORDED_WALKS = 5
"""As `fidelity.stages` records them."""
SECOND = {"agree on flags": "flags", "agree on states": "states"}
MIXES = {
    "mix as recorded": ("", []),
    "mix with rollouts": ("warm", []),
    "mix with more of it": ("mixed", []),
    "mix few refusals": ("", ["fit.refused_share=0.1"]),
    "mix half refused": ("", ["fit.refused_share=0.5"]),
    "mix with rollouts half refused": ("warm", ["fit.refused_share=0.5"]),
}
"""Whose episodes are added to the records, and settings of the fit."""


def fitted(
    here: Path, name: str, *, model: str, more: list[str], store: Path | None = None
) -> Path:
    """Fit a dream on the records of a study, or on others, unless it is there."""
    out = here / f"dream-{name.replace(' ', '-')}"
    more = [*ENVS[here.name.rpartition("-")[0]].fit, *more]
    learnt = str(store or here / "experience.sqlite")
    run(["fit", "--store", learnt, "--model", model, "--set", "fit.threads=1", *settings(*more),
         "--out", str(out)])  # fmt: skip
    return out


def part_of(here: Path, count: int) -> Path:
    """Return a store with so many of the train steps, and all that is held of other splits."""

    def chosen(old: ExperienceStore) -> Iterator[Trajectory]:
        yield from old.trajectories(split=Split.DEV)
        steps = 0
        for one in old.trajectories(split=Split.TRAIN):
            if steps >= count:
                return
            yield one
            steps += len(one.steps)

    return store_of(here, here / f"experience-{count}.sqlite", chosen)


def with_episodes_of(here: Path, policy: str, asked: argparse.Namespace) -> Path:
    """Return a copy of the study's records with episodes of a policy on train tasks added."""
    store = here / f"experience-{policy}.sqlite"
    if not store.exists():
        copy_store(here / "experience.sqlite", store)
    wanted = ENVS[asked.env]
    who = str(here / "warm") if policy == "warm" else policy
    run(["collect", "--env", wanted.spec, "--set", f"collect.max_steps={wanted.steps}",
         "--policy", who, "--split", "train", "--tasks", str(wanted.tasks),
         "--episodes", str(asked.rollouts), "--seed", str(asked.seed + 50), "--store", str(store),
         "--out", str(here / f"collect-{policy}")])  # fmt: skip
    return store


def with_walks(here: Path, count: int, asked: argparse.Namespace) -> Path:
    """Return the study's records with so many random walks of each held-out task."""
    store = here / f"experience-walks-{count}.sqlite"
    if count == RECORDED_WALKS:
        return here / "experience.sqlite"
    if count > RECORDED_WALKS:
        if not store.exists():
            copy_store(here / "experience.sqlite", store)
        wanted = ENVS[asked.env]
        run(["collect", "--env", wanted.spec, "--set", f"collect.max_steps={wanted.steps}",
             "--policy", "random", "--split", "dev", "--tasks", str(HELD_OUT_TASKS),
             "--episodes", str(HELD_OUT_TASKS * (count - RECORDED_WALKS)),
             "--seed", str(asked.seed + 70), "--store", str(store),
             "--out", str(here / f"collect-walks-{count}")])  # fmt: skip
        return store
    return store_of(
        here,
        store,
        lambda old: chain(
            old.trajectories(split=Split.TRAIN),
            islice(old.trajectories(split=Split.DEV), count * HELD_OUT_TASKS),
        ),
    )


def mixed(here: Path, name: str, asked: argparse.Namespace) -> dict[str, object]:
    """Fit on one mix of records, audit, and return the figures with what was learnt from."""
    policy, more = MIXES[name]
    store = with_episodes_of(here, policy, asked) if policy else None
    budget = [f"fit.steps={asked.steps}", f"seed={asked.seed}",
              f"fit.tokens_per_step={asked.tokens}"]  # fmt: skip
    seen = [f"audit.policy_episodes={asked.episodes}", f"audit.episodes={asked.episodes}"]
    dream = fitted(here, name, model="1m", more=[*budget, *more], store=store)
    learnt = json.loads((dream / "result.json").read_text())
    figures = audited(here, dream, name, steps=ENVS[asked.env].steps, more=seen)
    return {
        **figures,
        "lessons": learnt["real_transitions"]["offline"],
        "hard": round(learnt["hard_share"], 2),
    }


def audited(
    here: Path, dream: Path, name: str, *, steps: int, more: list[str], store: Path | None = None
) -> dict[str, object]:
    """Audit a dream with the study's warm-started policy, and return the figures.

    It remembers with the store that it was fitted on, or with another.
    """
    remembered = ["--store", str(store)] if store else []
    study = ENVS[here.name.rpartition("-")[0]]
    out = here / f"audit-{name.replace(' ', '-')}"
    run(["audit", "--world", str(dream), "--data", str(here / "held_out.sqlite"),
         "--policy", str(here / "warm"), *remembered, "--set", f"audit.max_steps={steps}",
         "--set", "audit.luck_episodes=0", *settings(*study.dream, *more),
         "--out", str(out)])  # fmt: skip
    found = json.loads((out / "result.json").read_text())
    one, loop, policy = found["one_step"], found["closed_loop"], found["on_policy"][0]
    figures = {
        "exact": one["exact"], "false success": one["false_success"],
        "invalid refused": one["invalid_refused"], "agreement": loop["agreement"],
        "precision": policy["precision"], "dream": policy["dream_success"],
        "real": policy["real_success"],
    }  # fmt: skip
    rounded = {
        key: None if value["mean"] is None else round(value["mean"], 3)
        for key, value in figures.items()
    }
    return {
        "name": name,
        **rounded,
        "unknown": policy["unknown"],
        "failed": policy["failed"],
        "steps unknown": one["unknown"],
        "seconds": round(found["cost"]["seconds"]),
    }


def rows_of(study: str, folder: Path, asked: argparse.Namespace) -> list[dict[str, object]]:
    """Run one study and return its table."""
    here = folder / f"{asked.env}-{asked.seed}"
    steps = ENVS[asked.env].steps
    budget = [f"fit.steps={asked.steps}", f"fit.tokens_per_step={asked.tokens}"]
    seen = [f"audit.policy_episodes={asked.episodes}", f"audit.episodes={asked.episodes}"]
    rows = []
    if study == "data":
        for model in asked.model:
            for count in DATA:
                name = f"{model} {count}"
                dream = fitted(here, name, model=model, more=budget, store=part_of(here, count))
                rows.append(audited(here, dream, name, steps=steps, more=seen))
                print(json.dumps(rows[-1]), flush=True)
    elif study == "ablation":
        for name, more in ABLATIONS.items():
            dream = fitted(here, name, model="1m", more=[*budget, *more])
            rows.append(audited(here, dream, name, steps=steps, more=seen))
            print(json.dumps(rows[-1]), flush=True)
    elif study == "second":
        more = [*budget, f"seed={asked.seed + 10}"]
        other = fitted(here, "second", model="1m", more=more)
        for name, what in {"alone": "", **SECOND}.items():
            more = [f"dream.second={other}", f"dream.agree_on={what}"] if what else []
            rows.append(audited(here, here / "dream", name, steps=steps, more=[*seen, *more]))
            print(json.dumps(rows[-1]), flush=True)
    elif study == "mix":
        for name in MIXES:
            rows.append(mixed(here, name, asked))
            print(json.dumps(rows[-1]), flush=True)
    elif study == "memory":
        for count in WALKS:
            name, store = f"{count} walks", with_walks(here, count, asked)
            dream = here / "dream"
            rows.append(audited(here, dream, name, steps=steps, more=seen, store=store))
            print(json.dumps(rows[-1]), flush=True)
    else:
        for name, more in CHECKS.items():
            rows.append(audited(here, here / "dream", name, steps=steps, more=[*seen, *more]))
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Run the studies that are asked for, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", nargs="+", choices=STUDIES)
    parser.add_argument("--out", type=Path, default=Path("runs/fidelity"))
    parser.add_argument("--env", default="coin", choices=list(ENVS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", nargs="+", default=["1m", "3m"], help="sizes for `data`")
    parser.add_argument("--steps", type=int, default=250, help="updates of each fit")
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of each update")
    parser.add_argument("--episodes", type=int, default=60, help="of each kind in an audit")
    parser.add_argument("--rollouts", type=int, default=500, help="episodes added for `mix`")
    asked = parser.parse_args()
    for study in asked.study:
        rows = rows_of(study, asked.out, asked)
        print(f"\n{study}, {asked.env}, seed {asked.seed}\n")
        print("| " + " | ".join(rows[0]) + " |")
        print("|" + "---|" * len(rows[0]))
        for found in rows:
            print("| " + " | ".join(map(str, found.values())) + " |")


if __name__ == "__main__":
    main()
