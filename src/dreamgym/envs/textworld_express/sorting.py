"""Keeps Sorting games apart, which the engine does not.

The engine holds 100 sorting problems per fold, each with one fixed set of objects, and a game of
seed s gets problem s mod 100 *with those very objects*. A second game of the same problem, even
under another seed, therefore takes the objects away from the first. Here, as soon as a game has got
its objects, the problem in the engine's list is replaced by a fresh one of the same quantities.
"""

from __future__ import annotations

from dreamgym.envs.textworld_express.java import Jvm

_PROBLEM = "textworldexpress.preprocessing.SortingProblem"
_LIST = "textworldexpress.data.SortingProblemGenerator$"


class SortingProblems:
    """The engine's lists of sorting problems, by fold."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        generator = jvm.call("z:java.lang.Class", "forName", f"s{_LIST}\n")
        module = jvm.call(jvm.call(generator, "getField", "sMODULE$\n"), "get", "n\n")
        self._lists = {fold: jvm.call(module, f"{fold}Set") for fold in ("train", "dev", "test")}
        self._sizes = {fold: int(jvm.ask(f"a\ne\n{one}\ne\n")) for fold, one in self._lists.items()}
        problem = jvm.call("z:java.lang.Class", "forName", f"s{_PROBLEM}\n")
        self._quantities = jvm.call(problem, "getDeclaredField", "sinputItems\n")
        jvm.call(self._quantities, "setAccessible", "bTrue\n")
        self._items: dict[tuple[str, int], str] = {}

    def renew(self, fold: str, seed: int) -> None:
        """Replace the problem of a seed by one with objects of its own."""
        jvm, problems = self._jvm, self._lists[fold]
        index = seed % self._sizes[fold]
        if (fold, index) not in self._items:
            old = jvm.ask(f"a\ng\n{problems}\ni{index}\ne\n").decode()
            self._items[fold, index] = jvm.call(self._quantities, "get", f"r{old}\n")
            jvm.forget(old)
        fresh = jvm.make(_PROBLEM, f"r{self._items[fold, index]}\n")
        jvm.ask(f"a\ns\n{problems}\ni{index}\nr{fresh}\ne\n")
        jvm.forget(fresh)
