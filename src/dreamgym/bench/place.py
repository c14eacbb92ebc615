"""Where suites play, with the settings that are known to work there, and how much of everything.

Values only. The settings of a place were found by experiments that `docs/log.md` tells of: with
them its audits open their gates, as far as any are known to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.types import digest

ANY = 10**9
"""No limit."""
KNOWN = ("policy.choose=known", "policy.mark_seen=true")
NAMED = ("policy.mark_goal=true", "policy.mark_actions=true")
SEARCHING = ("policy.mark_actions=true", "policy.mark_tried=true", "policy.window=0")
"""Who tries one thing after the other needs marks of what was seen and tried, and no more of it."""
POINTING = (
    "dream.placeholders=true",
    "dream.hints=true",
    "fit.forget_share=0.3",
    "fit.thin_share=0.5",
)
GROUP_SIZE = 8
STRICT = ("rl.minibatches=1",)
"""One update from each batch of episodes, all of it by the policy that played them."""


@dataclass(frozen=True, slots=True)
class Place:
    """An environment of a suite."""

    name: str
    spec: str
    turns: int
    """After which an episode is cut off when one learns, is audited or judged."""
    recorded_turns: int = 0
    """After which a recorded one is; 0 means the same."""
    tasks: int = 300
    """Train tasks that are recorded and, in a dream, practised."""
    episodes: int = 1500
    own: int = 600
    """Episodes of the start itself that join the record before the fit."""
    demos: int = 40
    clone_steps: int = 200
    """Updates of the start; few where it is to be weak."""
    fit_steps: int = 500
    clone: tuple[str, ...] = KNOWN
    fit: tuple[str, ...] = ()
    dream: tuple[str, ...] = ()
    """How it is dreamt: settings that nothing is fitted for."""
    groups: int = 16
    """Tasks per step of practice; fewer where turns are slow."""
    rate: float = 5e-4
    """Of learning by trial, in dreams and for real; lower where the start can lose more."""
    practice: tuple[str, ...] = ()
    """More settings of learning by trial."""
    shortest: int = 1
    """Turns that an episode takes at least, on average: those of the expert, or a safe guess."""
    lengths: tuple[float, float] = (12.0, 15.0)
    """Turns of a recorded episode on average: of the mixed policies, and of the start."""


COIN8 = Place(
    "coin8", "twx/coin?numLocations=8&includeDoors=0", 15, 20, tasks=200, episodes=1000,
    own=1000, demos=3, clone_steps=10, fit_steps=400, shortest=6, lengths=(12.0, 15.5),
)  # fmt: skip
MAP6 = Place(
    "map",
    "twx/mapreader?numLocations=6&maxDistanceApart=3&maxDistractorItemsPerLocation=1"
    "&includeDoors=0",
    15, 25, tasks=200, episodes=1000, own=1000, demos=3, clone_steps=13, fit_steps=400,
    clone=(*KNOWN, *NAMED), shortest=6, lengths=(14.5, 20.0),
)  # fmt: skip
COIN5 = Place(
    "coin", "twx/coin?numLocations=5&includeDoors=0", 20, own=0, clone=(), shortest=3,
    lengths=(7.0, 10.0),
)  # fmt: skip
PLACES = {
    one.name: one
    for one in (
        # Where actions bear the marks, too, a policy can learn to search, and to be sure of it.
        replace(
            COIN8, name="coin8-marks", clone_steps=7, clone=(*KNOWN, "policy.mark_actions=true")
        ),
        COIN8,
        MAP6,
        replace(
            MAP6, name="map-marks", fit_steps=600,
            fit=POINTING,
            clone=(*KNOWN, *NAMED, "policy.mark_tried=true", "policy.window=0"),
        ),
        Place(
            # In one room, 61 test tasks are all that share no first state with training.
            "twc", "twx/twc?numLocations=2&numItemsToPutAway=1&fold=train", 14, tasks=300,
            episodes=2000, own=1500, clone_steps=120, fit_steps=600,
            clone=(*KNOWN, *SEARCHING), fit=("fit.ending_share=0.3", *POINTING),
            dream=("dream.known_wins=true", "dream.known_losses=true"),
            rate=3e-4, practice=STRICT, shortest=3, lengths=(7.8, 12.3),
        ),
        Place(
            "alfworld", "alfworld/generated?size=small", 30, 40, clone_steps=120, fit_steps=1200,
            clone=(*KNOWN, *NAMED), fit=("fit.ending_share=0.15", *POINTING), groups=8,
            rate=1.5e-4, practice=STRICT, shortest=5, lengths=(16.0, 28.0),
        ),
        COIN5,
        # Whoever learns there reads what those read who come from `coin8-marks`.
        replace(COIN5, name="coin-marks", clone=(*KNOWN, "policy.mark_actions=true")),
        Place(
            "cook",
            "twx/cookingworld?numLocations=3&numIngredients=2&numDistractorItems=2&includeDoors=0",
            30, fit_steps=700, fit=POINTING, shortest=4, lengths=(24.0, 25.0),
        ),
    )
}  # fmt: skip
"""Environments by short name. No settings are known with which `cook` passes its audit."""
OTHER_TURNS = 24
"""Of an episode in an environment of a kind that no place is of."""


def find_place(name: str) -> Place:
    """Return a place by its short name, or one for a spec, with the settings of its kind.

    `twx/coin?numLocations=11` is played as `coin8-marks` is, and all of `alfworld/` as `alfworld`.
    """
    if name in PLACES:
        return PLACES[name]
    if "/" not in name:
        raise ConfigError(f"unknown environment '{name}'.{did_you_mean(name, PLACES)}")
    game, _, parameters = name.partition("?")
    short = "".join(char if char.isalnum() else "-" for char in game)
    if parameters:
        short += f"-{digest(name, size=2)}"
    if game.startswith("alfworld/"):
        # The shortest of its problems take three turns.
        return replace(PLACES["alfworld"], name=short, spec=name, shortest=3)
    for known in PLACES.values():
        if game == known.spec.partition("?")[0]:
            return replace(known, name=short, spec=name, shortest=1)
    return Place(short, name, OTHER_TURNS, fit=POINTING)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything. One value per size, so that a table says what it is of."""

    name: str
    rl_steps: int
    """In a dream, and before reality."""
    real_steps: int
    """For real, where that is all of it."""
    s2r_steps: int
    """For real after a dream, at most."""
    judged: int
    """Held-out real episodes per seed."""
    then_real: int = 0
    """Real transitions of sim-to-real; 0 means a sixteenth of what real practice has at least."""
    dev_tasks: int = 100
    walks: int = 500
    """Random episodes of dev tasks that the dream may remember; the fit never sees them."""
    held: int = 150
    """Recorded episodes that audits look at."""
    sft_demos: int = 40
    sft_steps: int = 200
    """Of cloning as an arm of its own."""
    dpo_steps: int = 40
    most_tasks: int = ANY
    most_episodes: int = ANY
    most_updates: int = ANY
    """Of the start, and of the fit."""
    most_groups: int = ANY
    """Tasks per step of practice."""
    cooled: bool = False
    """Whether the rate falls over the last third of all practice, in dreams and for real, and
    sim-to-real goes on with the optimiser that the dream left."""
    explored: int = 0
    """Episodes of `explore` on record of each train task that a dream learns from."""
    gate: bool = True
    """Whether a dream must pass its audit; off at sizes at which none could."""
    look_every: int = 10
    look_episodes: int = 50
    quick: tuple[str, ...] = ()
    """Settings of every training and fit."""

    def practice(self, place: Place) -> tuple[str, ...]:
        """Return how a place is practised, in a dream and for real."""
        rate = f"rl.learning_rate={place.rate:g}"
        return (f"rl.groups={self.groups(place)}", rate, "rl.kl=0", *place.practice)

    def groups(self, place: Place) -> int:
        """Return the tasks per step of practice."""
        return min(place.groups, self.most_groups)

    def budget(self, place: Place) -> int:
        """Return the real transitions that sim-to-real may take.

        Real practice plays `real_steps` times all groups, and no episode is shorter on average than
        an expert's: what it makes is at least 16 times as much, whatever it learns.
        """
        least = self.real_steps * self.groups(place) * GROUP_SIZE * place.shortest
        return self.then_real or least // 16

    def pays(self, place: Place) -> bool:
        """Say whether that pays for a group of episodes, however long they are."""
        return bool(self.then_real) or self.budget(place) >= GROUP_SIZE * place.turns


SCALES = {
    one.name: one
    for one in (
        Scale(
            "tiny", rl_steps=2, real_steps=2, s2r_steps=2, judged=8, then_real=200, dev_tasks=8,
            walks=8, held=8, sft_demos=6, sft_steps=10, dpo_steps=2, most_tasks=12,
            most_episodes=48, most_updates=10, gate=False, look_every=2, look_episodes=4,
            quick=("rl.groups=2", "rl.group_size=4", "rl.warmup_steps=1", "fit.tokens_per_step=768",
                   "train.tokens_per_step=768", "policy.vocabulary=600", "fit.eval_every=10"),
        ),
        # For suites of many dreams: fits of half the length, practice on half the tasks per step.
        Scale(
            "brief", rl_steps=10, real_steps=20, s2r_steps=2, judged=100, held=60, sft_steps=100,
            dpo_steps=20, most_updates=200, most_groups=8, explored=2,
        ),
        # Without explorers on record a dream may punish curiosity: what `medium` is compared with.
        Scale("small", rl_steps=12, real_steps=24, s2r_steps=2, judged=200, look_every=6),
        Scale(
            "medium", rl_steps=24, real_steps=24, s2r_steps=2, judged=200, look_every=6, explored=2,
        ),
        # A dream's steps cost nothing real, so it need not stop where real practice must.
        Scale(
            "long", rl_steps=60, real_steps=24, s2r_steps=2, judged=200, look_every=6, explored=2,
            cooled=True,
        ),
        Scale(
            "full", rl_steps=60, real_steps=48, s2r_steps=4, judged=200, look_episodes=100,
            explored=2, cooled=True,
        ),
    )
}  # fmt: skip
