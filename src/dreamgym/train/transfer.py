"""When a dream has taught enough, and when it is being exploited: rules over what was seen.

Nothing here plays or learns. `SwitchRule` reads the steps made in a dream and the looks at reality;
`WatchRule` reads pairs of episodes, dreamt and told again for real. Both answer with a reason in
words, or with nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dreamgym.errors import ConfigError, did_you_mean

ACTS = ("note", "stop", "return")
"""What follows when a watch finds a dream wanting: a note, an end, or an end with the policy that
looks at reality found best."""


@dataclass(frozen=True, slots=True)
class DreamtStep:
    """What the rules need to know of a step that was practised in a dream."""

    success: float
    """Of episodes that neither failed nor were given up."""
    unknown: float
    """The share of episodes that the dream gave up."""
    alike: float
    """The share of groups in which nobody did better than the others."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What pairs of episodes, dreamt and told again for real, say about a dream."""

    precision: float | None
    """Of the successes in the dream, the share that is real; None where there was none."""
    wins: int
    """The successes in the dream that this share stands on."""
    transitions: int
    """Real steps that it took."""
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwitchRule:
    """When practice in a dream ends."""

    step: int = 0
    """After exactly so many steps; 0 leaves it to the signs."""
    window: int = 10
    """Steps that are averaged over."""
    rise: float = 0.02
    """How much success in the dream must rise to count as rising."""
    looks: int = 2
    """Looks at reality without a new best that count as no longer rising."""
    max_unknown: float = 0.5
    """More episodes than this given up, over a window, leave too little to learn from."""
    max_alike: float = 0.95
    """More groups than this without a difference, over a window, leave too little to learn from."""

    def __post_init__(self) -> None:
        """Refuse rules that never could apply."""
        for name, least in (("step", 0), ("window", 1), ("looks", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be {least} or more")

    def time_to_go(self, past: Sequence[DreamtStep], looks: Sequence[Mapping[str, float]]) -> str:
        """Return why it is time to practise elsewhere, or nothing."""
        if self.step:
            return f"step {self.step} was set for it" if len(past) >= self.step else ""
        return self.exploited(past, looks) or self.starved(past) or self.plateau(past)

    def plateau(self, past: Sequence[DreamtStep]) -> str:
        """Say so if the last window was hardly better than the one before it."""
        if len(past) < 2 * self.window:
            return ""
        before = _mean([one.success for one in past[-2 * self.window : -self.window]])
        lately = _mean([one.success for one in past[-self.window :]])
        if lately - before >= self.rise:
            return ""
        return (
            f"plateau: success in the dream went from {before:.3f} to {lately:.3f} "
            f"over {self.window} steps"
        )

    def starved(self, past: Sequence[DreamtStep]) -> str:
        """Say so if the last window held too little to learn from."""
        if len(past) < self.window:
            return ""
        lately = past[-self.window :]
        unknown, alike = (
            _mean([one.unknown for one in lately]), _mean([one.alike for one in lately])
        )  # fmt: skip
        if unknown > self.max_unknown:
            return f"unknown: the dream gave up {unknown:.0%} of the last episodes"
        if alike > self.max_alike:
            return f"no variance: {alike:.0%} of the last groups taught nothing"
        return ""

    def exploited(self, past: Sequence[DreamtStep], looks: Sequence[Mapping[str, float]]) -> str:
        """Say so if reality stopped rising while the dream goes on rising.

        The last looks found nothing better than the best before them, and success in the dream is
        higher now than it was around that best look.
        """
        if len(looks) <= self.looks:
            return ""
        before, lately = looks[: -self.looks], looks[-self.looks :]
        best = max(before, key=lambda look: look["real/success"])
        newest = max(look["real/success"] for look in lately)
        if newest > best["real/success"]:
            return ""
        then, now = self._around(past, int(best["step"])), self._around(past, len(past))
        if now - then < self.rise:
            return ""
        return (
            f"exploitation: success in the dream rose from {then:.3f} to {now:.3f} since step "
            f"{int(best['step'])}, real success did not ({best['real/success']:.3f}, "
            f"then at most {newest:.3f})"
        )

    def _around(self, past: Sequence[DreamtStep], step: int) -> float:
        """Return success in the dream over the window before a step, or the first after none."""
        part = past[max(0, step - self.window) : step] or past[: self.window]
        return _mean([one.success for one in part])


@dataclass(frozen=True, slots=True)
class WatchRule:
    """When a dream is no longer trusted, and what follows."""

    acts: str = "note"
    every: int = 10
    """Steps between readings."""
    min_precision: float = 0.85
    min_wins: int = 5
    """Successes in the dream below which a reading says nothing."""

    def __post_init__(self) -> None:
        """Refuse what cannot be followed."""
        if self.acts not in ACTS:
            raise ConfigError(f"a watch cannot '{self.acts}'.{did_you_mean(self.acts, ACTS)}")
        if self.every < 1:
            raise ConfigError(f"every is {self.every}; it must be 1 or more")

    def mistrust(self, reading: Reading) -> str:
        """Return why the dream is no longer to be trusted, or nothing."""
        if reading.precision is None or reading.wins < self.min_wins:
            return ""
        if reading.precision >= self.min_precision:
            return ""
        return (
            f"precision: {reading.precision:.3f} of {reading.wins} successes in the dream are "
            f"real, at least {self.min_precision:g} is needed"
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
