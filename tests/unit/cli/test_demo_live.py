from io import StringIO

from rich.console import Console

from dreamgym.cli.demo_live import DemoView
from dreamgym.config import load_config
from dreamgym.jobs.demo_plan import plan_demo
from dreamgym.jobs.demo_result import CurvePoint
from dreamgym.jobs.stages import Tick


def shown(tmp_path, ticks, *, terminal=False):
    """What the view prints of (number of the stage, share, note, reused)."""
    # What does not fit on a screen is cut off: this one is high enough, whoever runs the test.
    console = Console(
        file=StringIO(), width=120, height=60, force_terminal=terminal, color_system=None
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
    assert "● real, held-out tasks" in told
