"""What a trained policy is, on one card: `policy.json` beside its weights.

Whoever loads a policy learns here how it wants to be asked. A card whose prompts are no longer ours
is refused: the model learnt others.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from dreamgym.agents.marks import Marks
from dreamgym.agents.policy_prompt import PROMPT_DIGEST, Format
from dreamgym.agents.policy_tokens import ALL
from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.files import write_atomically

CARD = "policy.json"


class Choose(StrEnum):
    """What a policy chooses among, by scoring."""

    NOTHING = "nothing"
    """It speaks freely."""
    LISTED = "listed"
    """The admissible actions, where the environment lists them."""
    KNOWN = "known"
    """The actions that it knows and the state suggests; also in a dream, which lists nothing."""


POLICY = "policy"
"""The folder of the policy inside the run of a training."""


@dataclass(frozen=True, slots=True)
class PolicyCard:
    """Everything about a policy that is not weights."""

    env: str
    """The environment that it was trained for."""
    format: Format = Format.COMPACT
    window: int = ALL
    """Earlier turns that it is shown: see `CompactWriter`."""
    list_actions: bool = False
    """Whether its states list the admissible actions."""
    mark_seen: bool = False
    """Whether its states mark the places where the episode has been."""
    mark_goal: bool = False
    """Whether they mark what the goal speaks of."""
    mark_actions: bool = False
    """Whether its actions bear the marks of the names in them."""
    mark_tried: bool = False
    """Whether they bear one where the episode did the same in the very same state before."""
    think: bool = False
    """Whether it is asked to reason first; in the chat format only."""
    longest_action: int = 24
    """Tokens after which an answer is cut off."""
    temperature: float = 1.0
    choose: Choose = Choose.NOTHING
    """What it chooses among, if it does not speak freely."""
    knows: dict[str, Any] = field(default_factory=dict)
    """The actions that it knows, and how things stand where they are done: the plain values of
    `experience.affordances`."""
    prompts: str = PROMPT_DIGEST

    @property
    def marks(self) -> Marks:
        """What its states and actions mark."""
        return Marks(
            seen=self.mark_seen,
            goal=self.mark_goal,
            actions=self.mark_actions,
            tried=self.mark_tried,
        )

    def save(self, folder: Path) -> None:
        """Write the card into a folder."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        write_atomically(folder / CARD, text + "\n")


def load_policy_card(folder: Path) -> PolicyCard:
    """Read the card of a folder."""
    path = folder / CARD
    if not path.is_file():
        raise ConfigError(
            f"{folder} holds no policy: there is no {CARD}. `dreamgym train` makes one"
        )
    try:
        plain = json.loads(path.read_text("utf-8"))
        kinds = {"format": Format(plain["format"]), "choose": Choose(plain["choose"])}
        card = PolicyCard(**{**plain, **kinds})
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a policy's card of this version ({error}): train the policy again"
        ) from error
    if card.prompts != PROMPT_DIGEST:
        raise ConfigError(
            f"the policy in {folder} learnt other prompts ({card.prompts}) than those of this "
            f"version ({PROMPT_DIGEST}): train it again"
        )
    return card


def model_folder(path: Path) -> Path | None:
    """Return the model folder that a path means: itself, or the one inside a run."""
    for folder in (path, path / POLICY, path / "model"):
        if (folder / "config.json").is_file():
            return folder
    return None


CHANGEABLE = ("temperature", "choose", "longest_action")
"""What may differ from how a policy was trained."""


def read_changes(text: str) -> dict[str, Any]:
    """Return the settings in the part of a policy's name behind `?`, such as `temperature=0`."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(PolicyCard)}
    changes: dict[str, Any] = {}
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        if name not in CHANGEABLE:
            raise ConfigError(f"'{name}' of a policy.{did_you_mean(name, CHANGEABLE)}")
        try:
            changes[name] = _READERS[kinds[name]](value)
        except (ValueError, KeyError):
            raise ConfigError(f"{name}={value} of a policy is no {kinds[name]}") from None
    return changes


_READERS: dict[str, Any] = {
    "float": float,
    "int": int,
    "Choose": Choose,
}
