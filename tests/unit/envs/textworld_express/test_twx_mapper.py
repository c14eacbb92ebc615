import os
import random
import re
from pathlib import Path

import pytest

from dreamgym.envs.textworld_express.games import GENERATION
from dreamgym.envs.textworld_express.java import Server
from dreamgym.envs.textworld_express.mapper import (
    VERSION,
    entities,
    is_refusal,
    map_feedback,
    map_goal,
    map_place,
    map_state,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "twx"
SPECS = {
    "cookingworld": "twx/cookingworld?numLocations=3&numIngredients=2&numDistractorItems=3&test=20",
    "twc": "twx/twc?numLocations=2&numItemsToPutAway=2&includeDoors=1&test=20",
    "coin": "twx/coin?numLocations=5&numDistractorItems=5&test=20",
    "mapreader": "twx/mapreader?numLocations=6&limitInventorySize=1&test=20",
    "arithmetic": "twx/arithmetic?test=20",
    "sorting": "twx/sorting?test=20",
    "simonsays": "twx/simonsays?test=20",
    "peckingorder": "twx/peckingorder?test=20",
}
BEFORE = ["dance", "look around", "inventory", "task", "open door to north", "examine fridge"]
VARIANTS = {
    "cookingworld": ("", "numLocations=2,numIngredients=5"),
    "twc": ("", "includeDoors=1,limitInventorySize=1"),
    "coin": ("", "numDistractorItems=10,includeDoors=0"),
    "mapreader": ("", "includeDoors=1,limitInventorySize=1,numLocations=6"),
}
NOUN = re.compile(
    r"(?:move|(?:open|close) door to|take|open|close|examine|read|chop|slice|dice|eat) (.+)"
    r"|put (.+) in (.+)|cook (.+) in (.+)"
)
UNNAMED = {"look around", "inventory", "task", "prepare meal"}


def random_walk(jvm, game, params, *, seeds, steps):
    """Yield what the engine says at every step of some random walks."""
    server = Server(jvm)
    server.load(game, params)
    choose = random.Random(0)
    for seed in range(seeds):
        answer = server.generate(seed, "train")
        yield answer
        for _ in range(steps):
            answer = server.step(choose.choice(answer.valid))
            yield answer
            if answer.success or answer.failure:
                break


def walks(jvm, game, *, seeds=6, steps=40):
    for params in VARIANTS.get(game, ("",)):
        yield from random_walk(jvm, game, params, seeds=seeds, steps=steps)


@pytest.mark.parametrize("game", sorted(SPECS))
def test_golden_states(play, jvm, game):
    """The engine's words and ours side by side; read these files to see what the mapper does."""
    one, opening = play(SPECS[game], 2)
    lines = [f"goal: {opening.task.goal}", "", opening.observation.text, ""]
    for action in [*BEFORE, *one.expert()]:
        result = one.step(action)
        said = " ".join(one.raw.observation.split())
        flags = [flag for flag in ("refused", "terminated", "success") if getattr(result, flag)]
        lines += [f"$ {action}", f"engine: {said}", " ".join([f"{result.reward:.3f}", *flags])]
        lines += [result.observation.text, ""]
    text = "\n".join(lines)
    path = GOLDEN / f"{game}.v{VERSION}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "the mapper changed: raise VERSION, UPDATE_GOLDEN=1"


@pytest.mark.parametrize("game", sorted(set(GENERATION) - {"simonsays"}))
def test_every_noun_of_a_valid_action_is_in_the_state(jvm, game):
    """SimonSays has no place to show: its actions stand in the admissible list alone."""
    checked = set()
    for answer in walks(jvm, game):
        state = map_place(game, answer.look, answer.inventory)
        for action in set(answer.valid) - UNNAMED:
            found = NOUN.fullmatch(action)
            assert found, action
            for noun in filter(None, found.groups()):
                checked.add(noun)
                assert re.search(rf"(?<![\w-]){re.escape(noun)}(?![\w-])", state), (action, state)
    assert len(checked) > 5


@pytest.mark.parametrize("game", sorted(set(GENERATION) - {"simonsays"}))
def test_equal_places_allow_equal_actions(jvm, game):
    """The text keeps all that decides what can be done."""
    allowed = {}
    for answer in walks(jvm, game):
        place = map_place(game, answer.look, answer.inventory)
        assert allowed.setdefault(place, answer.valid) == answer.valid, place
    assert len(allowed) > 10


@pytest.mark.parametrize("game", sorted(GENERATION))
def test_nothing_falls_back_to_raw_prose_and_all_is_shorter(jvm, game):
    raw = short = 0
    for answer in walks(jvm, game):
        state = map_state(game, answer.observation, answer.look, answer.inventory)
        assert not re.search(r"\b(?:you|You|there is|that is|part of the room)\b", state), state
        raw += len(answer.observation) + len(answer.look) + len(answer.inventory)
        short += len(state)
    assert short < raw / (1.1 if game == "simonsays" else 2.5)


def test_order_does_not_matter():
    room = "You are in the attic. In one part of the room you see {}. There is also {}. \n"
    one = room.format("a coin", "a box, that is empty")
    other = room.format("a box, that is empty", "a coin")
    assert map_place("coin", one, "") == map_place("coin", other, "") == "attic\nbox: empty; coin"


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        ("Unknown action: I'm not sure what you mean.", "unknown action"),
        ("You can't move there, the door is closed. ", "the door is closed"),
        ("That is already open. ", "already open"),
        ("That is already closed. ", "already closed"),
        (
            "Your inventory currently has 2 items, and is full.  You can't pick up another item. ",
            "the inventory is full",
        ),
        (
            "Can only prepare meal in the -= kitchen =-. ",
            "can only prepare the meal in the kitchen",
        ),
    ],
)
def test_refusals(observation, told):
    assert is_refusal(observation)
    assert map_feedback(observation, "", "") == told


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        ("You take the coin.", ""),
        ("You open the wood door, revealing the attic. ", ""),
        ("Simon says, 'slice grape'.", "Simon says: slice grape"),
        (
            "Your task is to solve the following math problem: divide 36 by 6 . \nThen, pick up "
            "the item with the same quantity as the answer, and place it in the box. ",
            "math problem: divide 36 by 6",
        ),
        ("A troll  steals\nyour map.", "A troll steals your map."),
    ],
)
def test_what_an_answer_tells(observation, told):
    assert not is_refusal(observation)
    assert map_feedback(observation, "", "") == told


def test_examining_tells_nothing_that_is_not_seen():
    look = (
        "You are in the pantry. In one part of the room you see a shelf that has an apple on it. \n"
    )
    inventory = "Inventory: \n  a raw egg\n"
    for seen in ("a shelf that has an apple on it", "an apple", "a raw egg"):
        assert map_feedback(seen, look, inventory) == ""
    assert map_feedback("a dragon", look, inventory) == "a dragon"


def test_an_unknown_goal_is_kept():
    assert map_goal("Save  the\nworld.") == "Save the world."


def test_entities_are_rooms_and_things():
    state = (
        "living room\ncounter: 3 red apples, raw yellow potato; fridge open: 37ml of wood; "
        "safe: closed; sofa: empty; coin\nnorth: closed patio door; east: attic, open wood door"
        "\ncarrying 1/5: diced T-shirt\n> recipe: salt"
    )
    assert entities("take the coin in the side yard and put it in the box in the bar", state) == {
        *("living room", "counter", "red apples", "yellow potato", "fridge", "wood", "safe"),
        *("sofa", "coin", "attic", "T-shirt", "side yard", "bar"),
    }
    assert entities("do what Simon says", "Simon says: slice grape") == {"grape"}
