"""A walk through a dream: what each turn says, the way back, and reality beside it."""

import asyncio
from dataclasses import replace

import pytest

from coin_corridor import Engine
from dreamgym.errors import ConfigError, EnvError, LLMError
from dreamgym.experience import DreamWorld, ExperienceModel, Grounding
from dreamgym.jobs.play import Walk, changed_lines, find_task, happened, lines_beside, verdict
from dreamgym.llm import ScriptedLLM
from dreamgym.replay import open_store
from dreamgym.types import Observation, Origin, Source, Split, StepResult
from played_corridors import ENV, played

TASK = Engine(ENV).tasks(Split.TRAIN)[0]
HALL = "<think>the way is open</think>\n<next_state>\nhall\nrake\n</next_state>\n"
FLAGS = "Refused: False\nDone: {}\nSuccess: {}\nReward: {}"
GOES_ON = HALL + FLAGS.format("False", "False", 0)
WON = HALL + FLAGS.format("True", "True", 1)


class RealCorridors:
    """The engine in this process, as a world; breaks at a step that is told."""

    spec, source = ENV, Source.REAL

    def __init__(self, breaks_at=None):
        self.breaks_at, self.steps = breaks_at, 0

    async def open(self, task, memory=None):
        self.game = Engine(ENV).open(task)
        return self

    async def reset(self, seed):
        return self.game.reset(seed)

    async def step(self, action):
        if self.steps == self.breaks_at:
            raise EnvError("the corridor fell in")
        self.steps += 1
        return self.game.step(action)

    async def expert(self):
        return self.game.expert()

    async def close(self):
        pass


async def _opening(task):
    return Engine(ENV).open(task).reset(0)


def dream(*script, memory=None):
    model = ExperienceModel(ScriptedLLM(list(script)), retries=0)
    return DreamWorld(
        model, openings=_opening, memory=memory, references=2, grounding=Grounding(),
        outcome_only=True,
    )  # fmt: skip


def walk(world, *actions, real=None):
    """Return the walk after these actions, `:undo` among them."""

    async def go():
        one = Walk(world, TASK, real=real)
        await one.begin()
        turns = [await (one.undo() if word == ":undo" else one.act(word)) for word in actions]
        return one, turns

    return asyncio.run(go())


def test_a_turn_says_who_decided_and_why():
    one, (refused, moved) = walk(dream(GOES_ON), "take moon", "move east")
    assert refused.origin is Origin.GROUNDING
    assert refused.reasoning == "nothing-known: nobody has heard of moon"
    assert refused.dream.refused
    assert moved.origin is Origin.MODEL
    assert moved.reasoning == "the way is open"
    assert one.state == "hall\nrake"
    assert one.task.goal == "take the coin"
    assert not one.over


def test_references_come_with_their_likeness(tmp_path):
    with open_store(tmp_path / "store.sqlite") as store:
        store.add([played(0), played(1)])
        with store.snapshot() as memory:
            _, (turn,) = walk(dream(GOES_ON, memory=memory), "move east")
    assert len(turn.references) == 2
    assert turn.references[0].similarity == pytest.approx(1.0, abs=1e-4)
    assert {found.transition.action for found in turn.references} == {"move east"}
    assert turn.dream.account.references == tuple(f.transition.id for f in turn.references)


def test_the_way_back_costs_no_new_answer():
    one, turns = walk(dream(GOES_ON, WON), "move east", "move east", ":undo")
    assert turns[-1] is True
    assert [turn.action for turn in one.turns] == ["move east"]
    assert one.state == "hall\nrake"
    assert not one.over, "the end was taken back"
    assert walk(dream(), ":undo")[1] == [False]


def test_an_answer_that_cannot_be_had_moves_nothing_and_the_walk_goes_on():
    real = RealCorridors()
    one, (lost, moved) = walk(dream(LLMError("busy"), GOES_ON), "move east", "move east", real=real)
    assert "no step could be had" in lost.trouble
    assert lost.dream is None and lost.real is None
    assert real.steps == 1, "reality did not go ahead alone"
    assert moved.trouble == ""
    assert len(one.turns) == 1


def test_both_worlds_answer_the_same_action():
    one, (turn,) = walk(dream(GOES_ON), "move east", real=RealCorridors())
    assert turn.real.observation.text == "hall\nrake\nwest: study; east: pantry"
    assert turn.real_before == turn.before == "study\ncup\neast: hall"
    assert one.real_steps == 1
    assert one.actions() == ("move east", "move west", "take rake")
    assert asyncio.run(one.expert()) == ("move east", "take coin")


def test_reality_walks_anew_for_the_way_back_and_is_counted():
    real = RealCorridors()
    one, _ = walk(dream(GOES_ON, GOES_ON), "move east", "move east", ":undo", real=real)
    assert one.real_steps == real.steps == 3
    assert one.real_state == "hall\nrake\nwest: study; east: pantry"


def test_when_the_dream_ends_reality_may_go_on():
    one, turns = walk(dream(WON), "move east", "move east", "take coin", real=RealCorridors())
    assert turns[0].dream.success and not turns[0].real.success
    assert turns[1].dream is None
    assert turns[2].real.success
    assert one.over


def test_when_reality_breaks_the_dream_goes_on_alone():
    one, turns = walk(dream(GOES_ON, GOES_ON), "move east", "move east", real=RealCorridors(1))
    assert turns[1].real is None
    assert "the corridor fell in" in turns[1].trouble
    assert turns[1].dream is not None
    assert one.real_over and not one.over


def test_known_actions_come_from_the_record_where_reality_is_not_there(tmp_path):
    with open_store(tmp_path / "store.sqlite") as store:
        store.add([played(0)])
        with store.snapshot() as memory:
            one, _ = walk(dream(memory=memory))
            assert "move east" in one.actions()
            assert "take moon" not in one.actions(), "it was refused"
    assert walk(dream())[0].actions() == ()


class Recorded:
    """As much of an open dream as finding a task takes."""

    class card:
        env, store = ENV, "some.sqlite"

    def tasks(self, split):
        return Engine(ENV).tasks(split) if split is Split.TRAIN else ()


def find(**how):
    wanted = {"wanted": None, "split": Split.TRAIN, "number": 0, **how}
    return asyncio.run(find_task(Recorded(), None, **wanted))


def test_tasks_are_found_by_number_and_by_name():
    assert find(number=3).key == "3"
    assert find(wanted=f"{ENV}#5").key == "5"
    with pytest.raises(ConfigError, match="no task 60: some.sqlite has 0 to 59 of train"):
        find(number=60)
    with pytest.raises(ConfigError, match=rf"no task '{ENV}#5x'. Did you mean '{ENV}#5'\?"):
        find(wanted=f"{ENV}#5x")
    with pytest.raises(ConfigError, match="no task of the dev split; --real"):
        find(split=Split.DEV)


def test_changed_lines_are_marked():
    found = changed_lines("hall\nrake\neast: study", "hall\neast: study\n> taken")
    assert found == ((" ", "hall"), ("-", "rake"), (" ", "east: study"), ("+", "> taken"))


def test_lines_stand_beside_each_other():
    found = lines_beside("hall\ncup\nend", "hall\nrug\nlamp\nend")
    assert found == (
        (True, "hall", "hall"), (False, "cup", "rug"), (False, "", "lamp"), (True, "end", "end"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({}, "reward 0"),
        ({"refused": True}, "reward 0, refused"),
        ({"reward": 1.0, "terminated": True, "success": True}, "reward 1, achieved"),
        ({"terminated": True}, "reward 0, ended without success"),
        ({"truncated": True}, "reward 0, cut off"),
    ],
)
def test_the_verdict_in_words(flags, words):
    assert verdict(StepResult(Observation("hall"), **flags)) == words


def test_what_happened_in_a_record():
    steps = list(played(0).transitions())
    assert happened(steps[0]) == "refused, > you cannot do that"
    assert happened(steps[2]) == "to hall"
    assert happened(steps[4]) == "nothing changed, achieved, > you take the coin"
    put = replace(steps[4], state="hall\nbox: empty; shelf: pen\ncarrying: cup",
                  next_state="hall\nbox: cup; shelf: pen", success=False, done=False)  # fmt: skip
    assert happened(put) == "- box: empty, - carrying: cup, + box: cup", "items, not whole lines"
