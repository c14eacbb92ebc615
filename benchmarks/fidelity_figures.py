"""The paper's Figures 4 and 5 in small, and what each check is worth.

    python benchmarks/fidelity.py --out runs/fidelity --stages 4        # records and policies first
    python benchmarks/fidelity_figures.py --out runs/fidelity data ablation checks

`data`: audit figures against the number of recorded steps, for two model sizes (Figure 5).
`ablation`: full, without history, reasoning, references (Figure 4). `checks`: the same dream with
one check off, or with more pessimism; nothing is fitted anew. Stages with a result are not
repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fidelity import ENVS, run

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
    "no grounding": ["dream.grounding=false"],
    "no ledger": ["dream.ledger=false"],
    "neither": ["dream.grounding=false", "dream.ledger=false"],
    "known pages only": ["dream.known_pages=true"],
    "sure of 0.3": ["dream.min_confidence=0.3"],
    "sure of 0.6": ["dream.min_confidence=0.6"],
}


def settings(words: list[str]) -> list[str]:
    """Return settings as words of a command."""
    return [word for setting in words for word in ("--set", setting)]


def fitted(here: Path, name: str, *, model: str, more: list[str]) -> Path:
    """Fit a dream on the records of a study, unless it is there."""
    out = here / f"dream-{name.replace(' ', '-')}"
    store = str(here / "experience.sqlite")
    run(["fit", "--store", store, "--model", model, "--set", "fit.threads=1", *settings(more),
         "--out", str(out)])  # fmt: skip
    return out


def audited(
    here: Path, dream: Path, name: str, *, steps: int, more: list[str]
) -> dict[str, object]:
    """Audit a dream with the study's warm-started policy, and return the figures."""
    out = here / f"audit-{name.replace(' ', '-')}"
    run(["audit", "--world", str(dream), "--data", str(here / "held_out.sqlite"),
         "--policy", str(here / "warm"), "--episodes", "100",
         "--set", "audit.policy_episodes=100", "--set", f"audit.max_steps={steps}",
         "--set", "audit.luck_episodes=0", *settings(more), "--out", str(out)])  # fmt: skip
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
    return {"name": name, **rounded, "unknown": policy["unknown"], "failed": policy["failed"]}


def rows_of(study: str, folder: Path, asked: argparse.Namespace) -> list[dict[str, object]]:
    """Run one study and return its table."""
    here = folder / f"{asked.env}-{asked.seed}"
    steps, budget = ENVS[asked.env][1], [f"fit.steps={asked.steps}"]
    rows = []
    if study == "data":
        for model in asked.model:
            for count in DATA:
                name = f"{model} {count}"
                more = [*budget, f"fit.transitions={count}"]
                dream = fitted(here, name, model=model, more=more)
                rows.append(audited(here, dream, name, steps=steps, more=[]))
                print(json.dumps(rows[-1]), flush=True)
    elif study == "ablation":
        for name, more in ABLATIONS.items():
            dream = fitted(here, name, model="1m", more=[*budget, *more])
            rows.append(audited(here, dream, name, steps=steps, more=[]))
            print(json.dumps(rows[-1]), flush=True)
    else:
        for name, more in CHECKS.items():
            rows.append(audited(here, here / "dream", name, steps=steps, more=more))
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Run the studies that are asked for, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", nargs="+", choices=["data", "ablation", "checks"])
    parser.add_argument("--out", type=Path, default=Path("runs/fidelity"))
    parser.add_argument("--env", default="coin", choices=list(ENVS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", nargs="+", default=["1m", "3m"], help="sizes for `data`")
    parser.add_argument("--steps", type=int, default=250, help="updates of each fit")
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
