"""Pictures: everything inside its frame, round numbers on the axes, names escaped."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.page import Point, Series, curve_plot, interval_bar, legend
from dreamgym.page.plot import HEIGHT, WIDTH, nice_ticks, short

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(st.tuples(st.floats(0, 1e6), NUMBERS), min_size=1, max_size=30))
def test_curves_stay_inside_their_frame(values):
    points = tuple(Point(x, mean, mean - 1, mean + 1) for x, mean in sorted(values))
    drawn = curve_plot([Series("one", points)], across="step", up="value")
    for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", drawn):
        assert 0 <= float(x) <= WIDTH
        assert 0 <= float(y) <= HEIGHT
    assert "nan" not in drawn


@given(NUMBERS, st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_are_between_and_evenly_apart(low, width, wanted):
    ticks = nice_ticks(low, low + width, wanted=wanted)
    assert len(ticks) <= wanted + 2
    apart = [second - first for first, second in pairwise(ticks)]
    assert all(math.isclose(one, apart[0], rel_tol=1e-3, abs_tol=1e-6) for one in apart)
    assert all(low - 1e-6 <= tick <= low + width + 1e-6 for tick in ticks)


def test_a_band_needs_an_interval_and_a_line_two_points():
    bare = curve_plot([Series("a", (Point(0, 0.2), Point(1, 0.4)))], across="x", up="y")
    assert "band" not in bare
    assert bare.count("<circle") == 2
    alone = curve_plot([Series("a", (Point(3, 0.2, 0.1, 0.3),))], across="x", up="y")
    assert "<path" not in alone
    assert 'r="4"' in alone


def test_bands_of_many_colours_would_hide_each_other():
    points = (Point(0, 0.2, 0.1, 0.3), Point(1, 0.4, 0.3, 0.5))

    def bands(colours):
        curves = [Series("a", points, colour) for colour in colours]
        return curve_plot(curves, across="x", up="y").count("band")

    assert bands(range(4)) == 4 and bands([0, 0, 1, 1, 2, 3]) == 6
    assert bands(range(5)) == 0


def test_curves_without_points_are_nowhere():
    assert curve_plot([Series("a", ())], across="x", up="y") == ""
    assert legend([Series("a", ())]) == ""


def test_names_cannot_write_the_page():
    curves = [Series("<b>", (Point(0, 1), Point(1, 1)), colour=11, dashed=True)]
    for made in (curve_plot(curves, across="<x>", up="<y>"), legend(curves)):
        assert "<b>" not in made
        assert "&lt;b&gt;" in made
    assert "c3 dashed" in legend(curves)


def test_a_mean_outside_its_scale_is_on_the_edge():
    assert 'cx="116.0"' in interval_bar(2.0, 1.5, 3.0)
    assert 'class="limit"' in interval_bar(0.5, 0.4, 0.6, limit=0.9)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.25, "0.25"), (950, "950"), (12000, "12k"), (2000, "2k"), (3e6, "3M")]
)
def test_long_numbers_are_short_on_an_axis(value, shown):
    assert short(value) == shown
