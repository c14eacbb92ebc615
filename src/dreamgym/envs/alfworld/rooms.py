"""What stands in the four kinds of room and what lies about in them: tables for `generate.py`.

Type names are ALFWorld's. What fits where, and what can be cleaned, heated or cooled, is not here:
that comes from ALFWorld itself.
"""

from __future__ import annotations

FURNITURE: dict[str, dict[str, int]] = {
    "Kitchen": {
        "Cabinet": 8, "CoffeeMachine": 1, "CounterTop": 3, "DiningTable": 2, "Drawer": 6,
        "Fridge": 1, "GarbageCan": 1, "Microwave": 1, "Shelf": 3, "SideTable": 1, "SinkBasin": 1,
        "StoveBurner": 4, "Toaster": 1,
    },
    "LivingRoom": {
        "ArmChair": 2, "Cabinet": 4, "CoffeeTable": 2, "DiningTable": 1, "Drawer": 6, "Dresser": 1,
        "GarbageCan": 1, "Ottoman": 1, "Safe": 1, "Shelf": 6, "SideTable": 3, "Sofa": 2,
        "TVStand": 1,
    },
    "Bedroom": {
        "ArmChair": 1, "Bed": 2, "Cabinet": 4, "Desk": 2, "Drawer": 8, "Dresser": 2,
        "GarbageCan": 1, "LaundryHamper": 1, "Safe": 1, "Shelf": 6, "SideTable": 2,
    },
    "Bathroom": {
        "BathtubBasin": 1, "Cabinet": 6, "Cart": 1, "CounterTop": 2, "Drawer": 6, "Dresser": 1,
        "GarbageCan": 1, "HandTowelHolder": 2, "Shelf": 3, "SideTable": 1, "SinkBasin": 2,
        "Toilet": 1, "ToiletPaperHanger": 1, "TowelHolder": 1,
    },
}  # fmt: skip
"""Room -> receptacle type -> how many of it at most."""

THINGS: dict[str, tuple[str, ...]] = {
    "Kitchen": (
        "Apple", "Book", "Bowl", "Bread", "ButterKnife", "CellPhone", "CreditCard", "Cup",
        "DishSponge", "Egg", "Fork", "Glassbottle", "Kettle", "Knife", "Ladle", "Lettuce", "Mug",
        "Pan", "Pen", "Pencil", "PepperShaker", "Plate", "Pot", "Potato", "SaltShaker",
        "SoapBottle", "Spatula", "Spoon", "Statue", "Tomato", "Vase", "WineBottle",
    ),
    "LivingRoom": (
        "Book", "Bowl", "Box", "Candle", "CellPhone", "CreditCard", "KeyChain", "Laptop",
        "Newspaper", "Pen", "Pencil", "Pillow", "Plate", "RemoteControl", "Statue", "TissueBox",
        "Vase", "Watch", "WateringCan",
    ),
    "Bedroom": (
        "AlarmClock", "BaseballBat", "BasketBall", "Book", "Bowl", "Box", "CD", "CellPhone",
        "Cloth", "CreditCard", "KeyChain", "Laptop", "Mug", "Pen", "Pencil", "Pillow",
        "RemoteControl", "Statue", "TennisRacket", "TissueBox", "Vase", "Watch",
    ),
    "Bathroom": (
        "Candle", "Cloth", "DishSponge", "HandTowel", "PaperTowel", "Plunger", "SoapBar",
        "SoapBottle", "SprayBottle", "TissueBox", "ToiletPaper",
    ),
}  # fmt: skip
"""Room -> what can be picked up there."""

LAMP = "DeskLamp"
LAMP_STANDS = ("CoffeeTable", "Desk", "DiningTable", "Dresser", "Shelf", "SideTable")

ROOMS: dict[str, tuple[str, ...]] = {
    "pick_and_place_simple": ("Kitchen", "LivingRoom", "Bedroom", "Bathroom"),
    "look_at_obj_in_light": ("LivingRoom", "Bedroom"),
    "pick_clean_then_place_in_recep": ("Kitchen", "Bathroom"),
    "pick_heat_then_place_in_recep": ("Kitchen",),
    "pick_cool_then_place_in_recep": ("Kitchen",),
    "pick_two_obj_and_place": ("Kitchen", "LivingRoom", "Bedroom", "Bathroom"),
}
"""Task type -> where ALFWorld sets it."""

TREATMENT: dict[str, tuple[str, str]] = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}
"""Task type -> what the object must allow and where it is done."""

HELD_OUT = frozenset(
    {"Book", "Candle", "Cloth", "Egg", "KeyChain", "Mug", "Pillow", "Plate", "SoapBar", "Spatula"}
)
"""Objects that `holdout=objects` keeps away from the training split."""
