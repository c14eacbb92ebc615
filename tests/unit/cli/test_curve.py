from dreamgym.cli.curve import HEIGHT, PRACTISED, PRACTISED_REAL, REAL, WIDTH, draw_curve
from dreamgym.jobs.demo_result import CurvePoint

LEFT = len("1.00 ┤")


def drawn(*points):
    return draw_curve([CurvePoint(*one) for one in points])


def test_points_are_where_their_values_are():
    lines = drawn((0, None, 0.0, False), (5, 0.5, None, False), (10, 1.0, None, True))
    assert lines[HEIGHT - 1][LEFT] == REAL
    assert lines[HEIGHT // 2][LEFT + WIDTH // 2] == PRACTISED
    assert lines[0][LEFT + WIDTH] == PRACTISED_REAL
    assert lines[HEIGHT + 1].endswith("step 10")
    assert "practised for real" in lines[-1]


def test_reality_is_drawn_over_practice_and_the_legend_names_what_is_there():
    lines = drawn((0, None, 0.2, False), (4, 0.5, 0.5, False))
    assert lines[HEIGHT // 2][LEFT + WIDTH] == REAL
    assert PRACTISED not in "".join(lines[:HEIGHT])
    assert "practised for real" not in lines[-1]


def test_nothing_is_drawn_of_nothing_and_one_point_is_enough():
    assert draw_curve([]) == []
    assert sum(REAL in line for line in drawn((0, None, 1.7, False))[:HEIGHT]) == 1
