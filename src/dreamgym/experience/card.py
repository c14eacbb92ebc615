"""What a fitted dream is, on one card: `dream.json` beside the weights.

Whoever opens a dream learns here how its model wants to be spoken to, where its memory lies and
what its rules know. A card whose prompts are no longer ours is refused: the model learnt others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import ConfigError
from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.grounding import KnownKinds
from dreamgym.experience.prompt import PROMPT_DIGEST, Style, Switches
from dreamgym.experience.task_prompt import TASK_PROMPT_DIGEST, Job
from dreamgym.files import write_atomically

CARD = "dream.json"


@dataclass(frozen=True, slots=True)
class DreamCard:
    """Everything about a fitted dream that is not weights."""

    env: str
    """The environment that it dreams, by its canonical spec."""
    store: str
    """The experience store that it was fitted on and remembers with."""
    embedder: str
    """The name of the embedder that the store was made with."""
    style: Style
    switches: Switches
    references: int
    known: KnownKinds
    prompts: str = PROMPT_DIGEST
    jobs: tuple[Job, ...] = (Job.STEP,)
    """What the model was taught; a chat model can be asked for all of it."""
    vary_goals: bool = False
    """Whether a known world may be given another goal."""
    task_prompts: str = TASK_PROMPT_DIGEST
    """The prompts of the jobs besides the step: where they are others now, those jobs are off."""

    def save(self, folder: Path) -> None:
        """Write the card into a folder."""
        plain: dict[str, Any] = asdict(self)
        plain["style"] = str(self.style)
        plain["jobs"] = [str(job) for job in self.jobs]
        plain["known"] = _sorted(plain["known"])
        write_atomically(folder / CARD, json.dumps(plain, indent=1, ensure_ascii=False) + "\n")


def _sorted(known: Any) -> Any:
    """Return what is known with lists in place of sets, for JSON."""
    if isinstance(known, dict):
        return {name: _sorted(value) for name, value in known.items()}
    return sorted(known) if isinstance(known, frozenset) else known


def load_card(folder: Path) -> DreamCard:
    """Read the card of a folder."""
    path = folder / CARD
    if not path.is_file():
        raise ConfigError(f"{folder} holds no dream: there is no {CARD}. `dreamgym fit` makes one")
    try:
        plain = json.loads(path.read_text("utf-8"))
        learnt = plain["prompts"]
        # Prompts first: the card of another version may hold other fields as well.
        card = _read(plain) if learnt == PROMPT_DIGEST else None
    except KeyError as error:
        raise ConfigError(f"{path} is not a dream's card: it lacks {error}") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} is not a dream's card: {error}") from error
    if card is None:
        raise ConfigError(
            f"the dream in {folder} learnt other prompts ({learnt}) than those of this "
            f"version ({PROMPT_DIGEST}): fit it again"
        )
    return card


_LATER = ("in_full", "beside", "layout", "out_of_place", "never_together")


def _read(plain: Mapping[str, Any]) -> DreamCard:
    known = plain["known"]
    return DreamCard(
        env=plain["env"],
        store=plain["store"],
        embedder=plain["embedder"],
        style=Style(plain["style"]),
        switches=Switches(**plain["switches"]),
        references=plain["references"],
        known=KnownKinds(
            kinds=frozenset(known["kinds"]),
            free=frozenset(known["free"]),
            on_sight=frozenset(known["on_sight"]),
            refusal=tuple(known["refusal"]),
            signposted=frozenset(known["signposted"]),
            bare=None if known["bare"] is None else frozenset(known["bare"]),
            # Dreams from before these rules know nothing about them.
            **{name: frozenset(known.get(name, ())) for name in _LATER},
            goals=GoalNeeds(
                **{name: frozenset(found) for name, found in known.get("goals", {}).items()}
            ),
        ),
        jobs=_jobs(plain),
        vary_goals=plain.get("vary_goals", False),
    )


def _jobs(plain: Mapping[str, Any]) -> tuple[Job, ...]:
    """Return what a model can do; cards from before there were other jobs do not say."""
    if Style(plain["style"]) is Style.FULL:
        return tuple(Job)
    if plain.get("task_prompts") != TASK_PROMPT_DIGEST:
        return (Job.STEP,)
    return tuple(map(Job, plain["jobs"]))
