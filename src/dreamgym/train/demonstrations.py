"""Demonstrations: which recorded episodes a policy copies, and their tokens with what is learnt.

Only actions are learnt, and of those only the ones that were carried out; goals and states are
read. An episode is written as the policy will meet it, window and all.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dreamgym.agents.marks import NO_MARKS, TRIED, Marks, action_marks, marked
from dreamgym.agents.policy import marks_now
from dreamgym.agents.policy_card import PolicyCard
from dreamgym.agents.policy_prompt import compact_answer, goal_text, state_text, with_states
from dreamgym.agents.policy_writers import writer_for
from dreamgym.errors import ConfigError
from dreamgym.models.samples import Sample
from dreamgym.models.tokenizer import Tokenizer
from dreamgym.train.renaming import Names, retold
from dreamgym.train.tokens import READ, TokenSequence, Weaver, given_tokens
from dreamgym.types import Source, Split, Trajectory, derive_seed

SPANS = {"action": 1.0}
"""What is learnt, with its weight."""


def choose_demonstrations(
    recorded: Iterable[Trajectory], *, behaviour: str, count: int, seed: int
) -> list[Trajectory]:
    """Return exactly so many successful real episodes of the training split, one per task.

    Which ones depends on the seed alone, and fewer are always among more.
    """
    seen: Counter[str] = Counter()
    found: dict[str, Trajectory] = {}
    for one in recorded:
        if one.provenance.source is not Source.REAL or one.task.split is not Split.TRAIN:
            continue
        if one.success:
            seen[one.provenance.behaviour] += 1
            if one.provenance.behaviour == behaviour:
                found.setdefault(one.task.id, one)
    ranked = sorted(found.values(), key=lambda one: derive_seed(seed, "demonstration", one.id))
    if len(ranked) < count or count < 1:
        listed = ", ".join(f"{name} {number}" for name, number in seen.most_common()) or "none"
        raise ConfigError(
            f"{count} demonstrations by '{behaviour}' are wanted, {len(ranked)} tasks of the train "
            f"split have one (successful episodes by policy: {listed}). Set train.demos or "
            f"train.behaviour, or record more: dreamgym collect --policy {behaviour}"
        )
    return ranked[:count]


def policy_texts(
    recorded: Iterable[Trajectory],
    demonstrations: Sequence[Trajectory],
    *,
    list_actions: bool,
    marks: Marks = NO_MARKS,
) -> Iterator[str]:
    """Yield what a vocabulary has to spell: every state on record, the actions of demonstrations.

    Actions of other episodes are left out: who starts from forty demonstrations knows only theirs.
    """
    for one in recorded:
        yield goal_text(one.task.goal)
        states = [one.opening, *(step.result.observation for step in one.steps)]
        for now in marked(one.task.goal, states, marks):
            yield state_text(now, list_actions=list_actions)
    for one in demonstrations:
        turns = with_states(one.opening, one.steps)
        states = [state for state, _ in turns]
        actions = [step.action.text for step in one.steps]
        for number, action in enumerate(actions):
            bears = action_marks(one.task.goal, states[: number + 1], actions[:number], marks)
            yield compact_answer(bears.on(action))
            if marks.tried:
                # Whoever demonstrates hardly does the same again; whoever searches may.
                yield compact_answer(action + TRIED)


def episode_sequences(
    one: Trajectory, tokenizer: Tokenizer, *, card: PolicyCard, positions: int
) -> tuple[TokenSequence, ...]:
    """Return an episode as the policy reads and writes it."""
    turns = with_states(one.opening, one.steps)
    weaver, writer = Weaver(), writer_for(card, tokenizer, positions=positions)
    said = [
        writer.answer(step.action.text, marks_now(writer, one.task.goal, turns[:number], state))
        for number, (state, step) in enumerate(turns)
    ]
    past = [(state, ids) for (state, _), ids in zip(turns, said, strict=True)]
    for number, (state, _) in enumerate(turns):
        prompt = writer.prompt(one.task.goal, past[:number], state)
        weaver.add(prompt, given_tokens(said[number]))
    return weaver.sequences()


def episode_samples(
    one: Trajectory, tokenizer: Tokenizer, *, card: PolicyCard, positions: int
) -> list[Sample]:
    """Return an episode as samples: actions that were carried out are learnt, all else is read."""
    learnt = [not step.result.refused for step in one.steps]
    return [
        Sample(each.ids, tuple(int(turn != READ and learnt[turn]) for turn in each.turns))
        for each in episode_sequences(one, tokenizer, card=card, positions=positions)
    ]


class Retelling:
    """Demonstrations for every epoch: some as they are, some under names drawn for that epoch."""

    def __init__(
        self, demonstrations: Sequence[Trajectory], names: Names, *, share: float, seed: int
    ) -> None:
        """Take what to tell.

        Args:
            demonstrations: as recorded.
            names: what may be renamed.
            share: of the episodes of an epoch, how many are renamed.
            seed: the same seed gives the same names in the same epoch.
        """
        self._demonstrations, self._names = demonstrations, names
        self._share, self._seed = share, seed

    def epoch(self, number: int) -> list[Trajectory]:
        """Return the demonstrations as they are told in that epoch."""
        return [self._told(one, number, place) for place, one in enumerate(self._demonstrations)]

    def _told(self, one: Trajectory, epoch: int, place: int) -> Trajectory:
        rng = random.Random(derive_seed(self._seed, "retold", epoch, place))
        if rng.random() >= self._share:
            return one
        return retold(one, self._names, rng)
