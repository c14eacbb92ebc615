"""The code of docs/audit.md runs and prints what it says; its table is the gate's."""

import contextlib
import io
import re
from pathlib import Path

from dreamgym.audit import Thresholds

PAGE = (Path(__file__).parents[3] / "docs" / "audit.md").read_text()


def test_the_code_prints_what_it_says():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    wanted = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == wanted


def test_the_table_names_every_threshold_with_its_default():
    rows = re.findall(r"^\| (`audit\..*?) \| (.*?) \|", PAGE, re.MULTILINE)
    told = {}
    for names, values in rows:
        for name, value in zip(re.findall(r"audit\.(\w+)", names), values.split(", "), strict=True):
            told[name] = float(value)
    wanted = Thresholds()
    assert told == {name: getattr(wanted, name) for name in wanted.__dataclass_fields__}
