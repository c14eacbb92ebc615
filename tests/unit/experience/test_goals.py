"""What goals need, learnt from steps that achieved them."""

from dataclasses import replace

from small_house import OPENING, transition

from dreamgym.experience.goals import FEW, MANY, GoalNeeds, alike


def won(goal, state, action):
    step = transition(OPENING, "take cup")
    return replace(
        step, goal=goal, state=state, action=action, next_state=state, done=True, success=True
    )


def put(thing, *, goal, there="empty"):
    return won(goal, f"hall\nbox: {there}\ncarrying: {thing}", f"put {thing.split(' (')[0]} in box")


def learnt(*steps):
    return GoalNeeds.from_successes(steps)


def test_words_that_no_success_lacked_must_be_met():
    hat, pen = (
        put(f"red {one}", goal=f"find a {one}, put it in the box") for one in ("hat", "pen")
    )
    goals = learnt(*[hat] * FEW, *[pen] * (FEW - 1))
    assert goals.words == {"box box", "hat hat"}, "`find` was never met, `pen` too seldom"
    cup = put("red cup", goal="")
    assert goals.lacking("put a hat in the box", cup.state, cup.action) == ("hat",)
    assert goals.lacking("put a cup in the box", cup.state, cup.action) == ()
    assert goals.lacking("put a key in the box", cup.state, cup.action) == (), "never asked for"


def test_a_word_may_need_another():
    heat = [put(f"{one} 1 (hot)", goal=f"heat some {one}, put it in box") for one in ("egg", "pie")]
    cold = put("jam 1", goal="put some jam in box")
    goals = learnt(*heat * MANY, *[cold] * MANY)
    assert {pair for pair in goals.words if pair.startswith("heat")} == {"heat hot"}
    raw = put("egg 1", goal=heat[0].goal)
    assert goals.lacking(raw.goal, raw.state, raw.action) == ("hot",)
    assert goals.lacking(heat[0].goal, heat[0].state, heat[0].action) == ()
    assert "heat hot" not in learnt(*heat * (MANY // 2 - 1), *[cold] * MANY).words, "too few"


def test_what_another_word_explains_is_no_need():
    bottle = put("bottle 1 (cool)", goal="put a cool bottle in box")
    others = [put(f"{one} 1 (cool)", goal=f"put a cool {one} in box") for one in ("egg", "pie")]
    plain = put("jam 1", goal="put a jam in box")
    goals = learnt(*[bottle] * MANY, *others * MANY, *[plain] * MANY)
    assert "cool cool" in goals.words
    assert "bottle cool" not in goals.words
    warm = put("bottle 1", goal="put a bottle in box")
    assert goals.lacking(warm.goal, warm.state, warm.action) == ()


def test_goals_that_took_several_things_are_not_met_by_the_first():
    both = put("hat 2", goal="put two hats in the box", there="hat 1")
    goals = learnt(
        *[both] * MANY,
        put("hat 2", goal="put a hat in the box"),
        put("hat 2", goal="put three hats", there="hat 1"),
    )
    assert goals.several == {"two", "hats"}, "`put` was achieved with one, `three` too seldom"
    assert goals.lacking(both.goal, both.state, both.action) == ()
    alone = put("hat 2", goal="", there="pen 1, chat 3")
    assert "two" in goals.lacking(both.goal, alone.state, alone.action)
    assert goals.lacking("put a hat in the box", alone.state, alone.action) == ()


def test_things_alike_are_counted_by_name():
    state = "hall\nbox: hat 1, hat 3 (wet), hatbox 1\ncarrying: hat 2"
    assert alike(state, "put hat 2 in box") == 3
    assert alike(state, "look") == 0


def test_nothing_is_needed_where_nothing_was_achieved():
    assert learnt() == GoalNeeds()
    assert GoalNeeds().lacking("put two hats in the box", OPENING, "take cup") == ()


def test_a_kind_of_action_that_never_achieved_such_a_goal_is_not_enough():
    looked, other = (
        won(f"examine the {one}", f"hall\nlamp\ncarrying: {one}", "use lamp")
        for one in ("cup", "pie")
    )
    stowed = [put(one, goal=f"put a {one} away") for one in ("hat", "pie")]
    goals = learnt(*[looked, other, *stowed] * MANY, put("hat", goal="put the hat down"))
    assert goals.acts == {"examine use _", "put put _ in _"}, "things come with it"
    there = put("cup", goal="examine the cup")
    assert goals.lacking(looked.goal, there.state, there.action) == ("lamp", "use")
    assert goals.lacking(looked.goal, looked.state, looked.action) == ()
    assert goals.lacking("fetch the cup", there.state, there.action) == (), "of that none is known"


def test_things_that_no_goal_named_yet_are_needed_where_others_were():
    names = ("hat", "pen", "cup", "egg", "pie")
    steps = [put(one, goal=f"put a {one} in box") for one in names for _ in range(FEW)]
    states = [f"hall\nbox: {', '.join(names)}, key"]
    goals = GoalNeeds.from_successes(steps, states=states)
    wrong = put("hat", goal="put a key in box")
    assert goals.lacking(wrong.goal, wrong.state, wrong.action) == ("key",)
    assert goals.lacking("put a star in box", wrong.state, wrong.action) == (), "nothing is one"
    without = put("hat", goal="put a key in box")
    known = GoalNeeds.from_successes([*steps, without], states=states)
    assert known.lacking(wrong.goal, wrong.state, wrong.action) == (), "it was done without"
    spared = [put("hat", goal=f"put a {one} in box") for one in ("bag", "jar") for _ in range(FEW)]
    loose = GoalNeeds.from_successes([*steps, *spared], states=[*states, "hall\nbox: bag, jar"])
    assert loose.lacking(wrong.goal, wrong.state, wrong.action) == (), "not all were needed"


def test_a_thing_that_a_goal_names_must_be_as_it_always_was_in_the_end():
    def lit(thing, lamp):
        before = won(
            f"look at {thing}, lamp", f"hall\ndesk: lamp 1\ncarrying: {thing}", "use lamp 1"
        )
        return replace(before, next_state=f"hall\ndesk: {lamp}\ncarrying: {thing}")

    steps = [lit(one, "lamp 1 (on)") for one in ("cup", "pie") for _ in range(MANY)]
    goals = GoalNeeds.from_successes(steps, states=[one.state for one in steps])
    assert goals.in_the_end == {"lamp on"}
    assert goals.unmet("look at hat, lamp", "hall\ndesk: lamp 1\ncarrying: hat") == ("on",)
    assert goals.unmet("look at hat, lamp", "hall\ncarrying: hat") == ("on",), "it is gone"
    assert goals.unmet("look at hat, lamp", "hall\ndesk: lamp 1 (on)\ncarrying: hat") == ()
    assert goals.unmet("look at hat", "hall\ndesk: lamp 1\ncarrying: hat") == (), "not asked for"
    once = GoalNeeds.from_successes(
        [*steps, lit("cup", "lamp 1")], states=[one.state for one in steps]
    )
    assert not once.in_the_end, "one exception is enough"
    always = GoalNeeds.from_successes(steps, states=[one.next_state for one in steps])
    assert not always.in_the_end, "what is never otherwise says nothing"


def test_how_a_thing_is_in_the_end_may_be_owed_to_another_word():
    def cooled(thing):
        return put(f"{thing} 1 (cool)", goal=f"put a cool {thing} in box")

    plain = [put(f"{one} 1", goal=f"put a {one} in box") for one in ("bottle", "hat")]
    steps = [*[cooled("bottle"), cooled("egg")] * MANY, plain[1]]
    goals = GoalNeeds.from_successes(steps, states=[one.state for one in (*steps, *plain)])
    assert not any(pair.startswith("bottle") for pair in goals.in_the_end)


def test_an_action_might_achieve_what_its_kind_achieved_where_nothing_is_lacking():
    steps = [put(one, goal=f"put a {one} away") for one in ("hat", "pie") for _ in range(MANY)]
    goals = learnt(*steps)
    hat = steps[0]
    assert goals.might_achieve(hat.goal, hat.state, hat.action)
    assert not goals.might_achieve(hat.goal, hat.state, "take hat"), "it never did"
    assert not goals.might_achieve("put a pie away", hat.state, hat.action), "a hat is no pie"
    assert not learnt().might_achieve(hat.goal, hat.state, hat.action)
