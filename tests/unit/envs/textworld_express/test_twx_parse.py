import pytest

from dreamgym.envs.textworld_express.parse import (
    Exit,
    Inventory,
    Page,
    Thing,
    parse_exits,
    parse_inventory,
    parse_map,
    parse_page,
    parse_recipe,
    parse_thing,
)


@pytest.mark.parametrize(
    ("sentence", "thing"),
    [
        ("a stove", Thing("stove")),
        ("some black pepper", Thing("black pepper")),
        ("an raw egg", Thing("raw egg")),
        ("216 grapes", Thing("216 grapes")),
        ("37ml of wood", Thing("37ml of wood")),
        ("a clean striped T-shirt", Thing("clean striped T-shirt")),
        ("a chest of drawers that is closed", Thing("chest of drawers", "closed")),
        ("an open wardrobe, that is empty", Thing("wardrobe", "open")),
        ("An open fridge, that contains a carrot", Thing("fridge", "open", ("carrot",))),
        (
            "An open fridge, that contains some water, a white onion, and a block of cheese",
            Thing("fridge", "open", ("block of cheese", "water", "white onion")),
        ),
        ("a box, that is empty", Thing("box", "surface")),
        ("A box, that contains a map, and a coin", Thing("box", "surface", ("coin", "map"))),
        ("a arm chair, that has nothing on it", Thing("arm chair", "surface")),
        (
            "a counter that has a knife, and a cookbook on it",
            Thing("counter", "surface", ("cookbook", "knife")),
        ),
    ],
)
def test_things(sentence, thing):
    assert parse_thing(sentence) == thing


def test_a_page():
    look = (
        "You are in the living room. In one part of the room you see a sofa, that has nothing on "
        "it. There is also a coin. \nThrough an open patio door, to the North you see the backyard."
        " To the East you see a closed frosted-glass door. To the West you see the kitchen. "
    )
    assert parse_page(look) == Page(
        "living room",
        (Thing("sofa", "surface"), Thing("coin")),
        (
            Exit("north", "backyard", "patio door"),
            Exit("east", "", "frosted-glass door"),
            Exit("west", "kitchen"),
        ),
    )


def test_an_empty_room():
    look = "You are in the driveway. \nTo the West you see the backyard. "
    assert parse_page(look) == Page("driveway", (), (Exit("west", "backyard"),))


def test_what_is_no_page_is_not_forced_into_one():
    assert parse_page("Simon says, 'jump up and down'.") is None
    assert parse_exits("To the North you see the attic. A dragon blocks the way. ") is None


def test_the_inventory():
    assert parse_inventory("Inventory: \n  Your inventory is currently empty.\n") == Inventory()
    assert parse_inventory("") == Inventory()
    text = "Inventory (maximum capacity is 2 items): \n  a map\n  a clean T-shirt\n"
    assert parse_inventory(text) == Inventory(("clean T-shirt", "map"), limit=2)
    assert parse_inventory(text).full
    assert not parse_inventory("Inventory: \n  a map\n").full


RECIPE = """Gather all following ingredients and follow the directions to prepare this tasty meal.

Ingredients:
  yellow potato
  banana

Directions:
  slice the yellow potato
  grill the yellow potato
  prepare meal

"""


def test_a_recipe():
    assert parse_recipe(RECIPE) == {"yellow potato": ("slice", "grill"), "banana": ()}
    assert parse_recipe(RECIPE.replace("prepare meal", "set the table")) is None
    assert parse_recipe("You take the banana.") is None


def test_a_map():
    text = (
        "The map reads:\n  The alley connects to the side yard.\n"
        "  The side yard connects to the bar, attic and alley.\n"
    )
    assert parse_map(text) == {("alley", "side yard"), ("bar", "side yard"), ("attic", "side yard")}
    assert parse_map(text + "  Here be dragons.\n") is None
    assert parse_map("") is None
