"""The example in docs/curriculum.md prints what it says, and the tables name what there is."""

import contextlib
import io
import re
from pathlib import Path

from dreamgym.tasks.gate import Reason
from dreamgym.tasks.pool import CROWDED, FAILED, INFEASIBLE, UNKNOWN, TaskState

PAGE = (Path(__file__).parents[3] / "docs/curriculum.md").read_text()


def test_the_example_prints_what_it_says():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    said = re.findall(r"# ([\d. ]+?)(?::.*)?$", code, re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})  # our own page
    assert printed.getvalue().splitlines() == said


def test_every_reason_and_state_is_told():
    for name in (*Reason, *TaskState, INFEASIBLE, UNKNOWN, FAILED, CROWDED):
        assert re.search(rf"\b{re.escape(name)}\b", PAGE), name
