"""What an explorer remembers of a house: its rooms, their ways out, where things were last seen.

Used by the rules in `rules.py`; it only ever knows what the episode has shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dreamgym.envs.textworld_express.mapper import COOKED
from dreamgym.envs.textworld_express.parse import Page


@dataclass(slots=True)
class Rooms:
    """A map that grows by looking."""

    pages: dict[str, Page] = field(default_factory=dict)
    """Each room as it was last seen."""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Where each thing was last seen: the room, and what it lay in or on, if anything."""

    def see(self, page: Page) -> None:
        """Remember a room as it is now."""
        shown = dict(_contents(page))
        for name, (room, holder) in list(self.places.items()):
            hidden = (thing := page.thing(holder)) is not None and thing.kind == "closed"
            if room == page.room and name not in shown and not hidden:
                del self.places[name]
        self.pages[page.room] = page
        self.places.update((name, (page.room, holder)) for name, holder in shown.items())

    def go(self, here: Page, wanted: Callable[[str], bool]) -> str | None:
        """Return the next action on the shortest known way to a room that is wanted."""
        start: tuple[str, str] = (here.room, "")
        queue, known = deque([start]), {here.room}
        while queue:
            room, first = queue.popleft()
            if room != here.room and wanted(room):
                return first
            page = self.pages.get(room)
            for way in page.exits if page else ():
                if way.room and way.room not in known:
                    known.add(way.room)
                    queue.append((way.room, first or f"move {way.way}"))
        return None

    def explore(self, here: Page) -> str | None:
        """Return the next action towards the unseen: open a door here, or enter a room."""
        for way in here.exits:
            if way.door and not way.room:
                return f"open door to {way.way}"
        new = self.go(here, lambda room: room not in self.pages)
        return new or self.go(here, self._has_closed_door)

    def search(self, here: Page, *, first: frozenset[str] = frozenset()) -> str | None:
        """Return the next action to find something hidden; `first` names likely places for it."""
        closed = sorted(thing.name for thing in here.things if thing.kind == "closed")
        likely = [name for name in closed if name in first]
        if likely:
            return f"open {likely[0]}"
        if step := self.explore(here):
            return step
        return f"open {closed[0]}" if closed else self.go(here, self._has_closed_thing)

    def fetch(self, here: Page, name: str) -> str | None:
        """Return the next action to get hold of a thing, or nothing if its place is unknown."""
        room, holder = self.places.get(name, ("", ""))
        if not room:
            return None
        if room != here.room:
            return self.go(here, lambda one: one == room)
        thing = here.thing(holder)
        return f"open {holder}" if thing and thing.kind == "closed" else f"take {name}"

    def _has_closed_door(self, room: str) -> bool:
        page = self.pages.get(room)
        return page is not None and any(way.door and not way.room for way in page.exits)

    def _has_closed_thing(self, room: str) -> bool:
        page = self.pages.get(room)
        return page is not None and any(thing.kind == "closed" for thing in page.things)


def plain(name: str) -> str:
    """Return a thing's name as actions spell it: `raw sliced potato` is `potato`."""
    return COOKED.sub("", name)


def _contents(page: Page) -> Iterator[tuple[str, str]]:
    """Yield everything in a room with what holds it."""
    for thing in page.things:
        yield plain(thing.name), ""
        for name in thing.contents:
            yield plain(name), thing.name
