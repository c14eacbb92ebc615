from io import StringIO

import pytest
from rich.console import Console

from dreamgym.cli.curve import REAL
from dreamgym.cli.demo_live import DemoView
from dreamgym.config import load_config
from dreamgym.jobs.demo_plan import plan_demo
from dreamgym.jobs.demo_result import CurvePoint
from dreamgym.jobs.stages import Tick


def shown(tmp_path, ticks, *, terminal=False, width=120, height=60):
    """What the view prints of (number of the stage, share, note, reused)."""
    # What does not fit on a screen is cut off: this one is high enough, whoever runs the test.
    console = Console(
        file=StringIO(), width=width, height=height, force_terminal=terminal, color_system=None
    )
    stages = plan_demo(load_config(preset="demo"), tmp_path)
    with DemoView(console, stages) as view:
        for place, share, note, reused in ticks:
            if stages[place].job == "rl":
                view.curve([CurvePoint(0, None, 0.4, for_real=False)])
            view.tick(Tick(stages[place], share, note, reused=reused))
    return console.file.getvalue()


def test_each_stage_is_said_once_when_it_begins_and_when_it_ends(tmp_path):
    told = shown(
        tmp_path,
        [(0, 0.0, "", False), (0, 0.5, "half of it", False), (0, 1.0, "all of it", False),
         (0, 1.0, "", False), (1, 0.0, "", False)],
    ).splitlines()  # fmt: skip
    assert told[0] == "[1/13 recorded] record real episodes of all sorts"
    assert told[1].startswith("[1/13 recorded] 0 s; about")
    assert told[2].startswith("[2/13 walks] walk through")
    assert len(told) == 3


def test_what_was_done_before_says_nothing_about_the_time_left(tmp_path):
    told = shown(tmp_path, [(place, 1.0, "", True) for place in range(13)])
    assert told.count("done before") == 13
    assert "time left not known yet" in told and told.rstrip().endswith("that was all")


def test_a_terminal_shows_all_stages_and_the_curve(tmp_path):
    told = shown(tmp_path, [(0, 1.0, "", True), (9, 0.5, "step 6 of 12", False)], terminal=True)
    assert "✓ record real episodes of all sorts (done before)" in told
    assert "▸ learn by trial in the dream" in told and "step 6 of 12" in told
    assert "● real, dev tasks" in told


def test_tasks_are_called_by_their_split(tmp_path):
    told = shown(tmp_path, [(place, 0.0, "", False) for place in range(13)])
    assert "held-out" not in told
    assert "[2/13 walks] walk through dev tasks at random" in told
    assert "[5/13 start-judged] play test tasks for real: the start" in told


@pytest.mark.parametrize(
    ("place", "note"),
    [(9, "step 12 of 20"), (10, "149 of 150 tasks"), (11, "1999 of 2000 real transitions"),
     (12, "149 of 150 tasks")],
)  # fmt: skip
def test_the_curve_fits_a_small_terminal_with_all_that_is_going_on(tmp_path, place, note):
    earlier = [(done, 1.0, "", True) for done in range(place)]
    told = shown(
        tmp_path, [*earlier, (9, 0.5, "", False), (place, 0.9, note, False)], terminal=True,
        width=80, height=24,
    )  # fmt: skip
    assert f"✓ {place} of 13 stages" in told
    last = told.rpartition(f"✓ {place} of 13 stages")[2]
    assert "1.00 ┤" in last and "step 1\n" in last and REAL in last
    assert "practised in the dream" in last, "the legend is the last line"
    assert "✓ record real episodes of all sorts (done before)" in last, "all of them at the end"
