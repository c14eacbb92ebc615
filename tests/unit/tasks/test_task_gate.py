"""The gate: every reason for which a made-up task is refused, and that good ones pass."""

import pytest
from made_groups import opening_of, openings

from dreamgym.errors import ConfigError
from dreamgym.experience.task_prompt import Variation
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.tasks.customs import learn_customs
from dreamgym.tasks.gate import Reason, TaskGate, task_text

KNOWN = [f"{one.task.goal}\n{one.observation.text}" for one in openings(10).values()]
GOOD = Variation("bring the cup to the study", "study\nbox: empty\neast: garden\ncarrying: map")


def gate(**more):
    customs = learn_customs(list(openings(10).values()))
    return TaskGate(customs, HashingEmbedder(), **more)


def reason(variation, known=KNOWN, *, at_home=False, **more):
    refused = gate(**more).refusal(variation, known, at_home=at_home)
    return refused and refused.reason


def state(room, *, box="box: empty", east="garden"):
    return f"{room}\n{box}\neast: {east}\ncarrying: map"


def test_a_new_task_after_the_custom_passes():
    assert reason(GOOD) is None


def test_a_known_task_is_refused_however_it_is_written():
    known = opening_of(3)
    shouted = Variation(known.task.goal.upper(), known.observation.text.replace("\n", " \n"))
    assert reason(shouted) is Reason.DUPLICATE


def test_a_task_all_but_equal_is_refused():
    assert reason(GOOD, [*KNOWN, task_text(GOOD) + " map"], alike=0.95) is Reason.ALIKE
    assert reason(GOOD, [*KNOWN, task_text(GOOD) + " map"], alike=1.0) is None


def test_a_held_out_task_is_never_practised():
    assert reason(GOOD, held_out=[task_text(GOOD)]) is Reason.HELD_OUT
    assert reason(GOOD, held_out=[task_text(GOOD) + " map"], alike=0.95) is Reason.HELD_OUT
    assert reason(GOOD, held_out=[task_text(GOOD)], at_home=True) is Reason.HELD_OUT


def test_a_first_state_that_breaks_the_custom_is_refused():
    assert reason(Variation(GOOD.goal, "study\ncup")) is Reason.LAYOUT
    assert reason(Variation(GOOD.goal, state("study", box="hall: full"))) is Reason.LAYOUT


def test_words_that_nobody_has_heard_of():
    moon = Variation("land a rocket on the moon study", state("study"))
    assert reason(moon) is Reason.UNHEARD_OF
    assert reason(moon, new_words=0.5) is None


def test_a_goal_that_has_nothing_to_do_with_the_first_state():
    elsewhere = Variation(GOOD.goal, state("cellar"))
    assert reason(elsewhere) is Reason.OUT_OF_SIGHT
    assert reason(elsewhere, at_home=True) is None


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="alike"):
        gate(alike=2.0)
