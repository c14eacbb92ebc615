"""Success by online real transitions and by time (the paper's Figure 3), from looks on the way.

Cells on record keep their looks, so these pictures need no folder of any training.
"""

from __future__ import annotations

from collections.abc import Callable

from dreamgym.bench.suites import learnt_in
from dreamgym.bench.table import BenchTable, CellResult
from dreamgym.eval.seeds import across_seeds
from dreamgym.page import Point, Series, curve_plot, legend, note, section
from dreamgym.report.learning import figure, figures

Place = Callable[[CellResult, int], float]
"""Where on the way a look of a cell was."""


def online(cell: CellResult, look: int) -> float:
    """Return the real transitions that were practised on until then."""
    return cell.looks[look][0]


def minutes(cell: CellResult, look: int) -> float:
    """Return the minutes of everything until then: of records, fits and audits, too."""
    return cell.seconds_at(look) / 60


def looks_section(found: BenchTable) -> str:
    """Return a picture of each kind for every environment where looks are known of some arms."""
    drawn, shown = [], dict[str, Series]()
    homes = [env for env in found.suite.envs if learnt_in(env)[1]]
    for env in homes:  # Looks are of where a policy learns, wherever it is judged later.
        arms = [arm for arm in found.suite.arms if any(one.looks for one in found.of(arm, env))]
        for words, place in (("online real transitions", online), ("minutes", minutes)):
            curves = [
                Series(arm, curve(found.of(arm, env), place), found.suite.arms.index(arm))
                for arm in arms
            ]
            if not any(point.x for one in curves for point in one.points):
                continue  # where nothing is practised for real
            drawn.append(
                figure(
                    f"{env}: real success by {words}",
                    curve_plot(curves, across=words, up="success", between=(0.0, 1.0)),
                )
            )
            shown |= {one.name: one for one in curves if one.points}
    if not shown:
        return ""
    words = (
        "Looks at dev tasks while training, mean over seeds with its 95 % t interval; of more than "
        "four arms no bands are drawn. Minutes are of everything: records, fits, audits and the "
        "evaluation come first."
    )
    return section("Success on the way", note(words), legend(list(shown.values())), figures(drawn))


def curve(cells: list[CellResult], place: Place) -> tuple[Point, ...]:
    """Return the looks of an arm's seeds, the first of each, the second of each and so on.

    A look that some seeds had and others had not is left out: they are of other lengths.
    """
    known = [cell for cell in cells if cell.looks]
    points = []
    for look in range(min((len(cell.looks) for cell in known), default=0)):
        spread = across_seeds([cell.looks[look][1] for cell in known]).within(0.0, 1.0)
        where = sum(place(cell, look) for cell in known) / len(known)
        points.append(Point(where, spread.mean, spread.low, spread.high))
    return tuple(points)
