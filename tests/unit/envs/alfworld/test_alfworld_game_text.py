"""Games as text: goals are taken out of grammars, and read from PDDL."""

import pytest

from dreamgym.envs.alfworld.game_text import TASK_TYPES, make_game_text, read_aim

SENTENCE = '{"task": [{"rhs": "Your task is to: %s."}]}'


def test_a_plain_goal_is_kept_apart_so_that_games_share_a_grammar():
    one = make_game_text("d", SENTENCE % "put a mug in desk", "p")
    two = make_game_text("d", SENTENCE % "look at cd under the desklamp", "p")
    assert one.grammar == two.grammar
    assert one.goal == "put a mug in desk"
    assert one.with_goal("Your task is to: UNKNOWN GOAL.") == "Your task is to: put a mug in desk."


@pytest.mark.parametrize("goal", ['say \\"hello\\"', "use #magic#", "put {o} in [r]"])
def test_a_goal_that_the_grammar_may_read_as_more_than_words_stays_where_it_is(goal):
    text = make_game_text("d", SENTENCE % goal, "p")
    assert (text.goal, text.grammar) == ("", SENTENCE % goal)
    assert text.with_goal("as it is") == "as it is"


@pytest.mark.alfworld
@pytest.mark.parametrize("kind", TASK_TYPES)
def test_the_aim_is_read_from_the_goal_alone(upstream, kind):
    goal = upstream.goals[kind]["pddl"].replace("#", "-")
    aim = read_aim("(define ..." + goal.format(obj="Mug", recep="Desk", toggle="DeskLamp"))
    assert aim is not None
    assert (aim.task_type, aim.thing) == (kind, "mug")
    looks = kind == "look_at_obj_in_light"
    assert (aim.place, aim.lamp) == (("", "desklamp") if looks else ("desk", ""))


@pytest.mark.alfworld
def test_other_goals_have_no_aim(upstream):
    goal = upstream.goals["pick_and_place_with_movable_recep"]["pddl"].replace("#", "-")
    assert read_aim(goal.format(obj="Mug", recep="Desk", mrecep="Box")) is None
