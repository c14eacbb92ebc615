"""The page about dreams: its code runs and prints what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "dream.md"


def test_the_code_on_the_page_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    assert "[grounding] nothing-known: nobody has heard of moon" in printed
    assert printed.endswith("kitchen\nspoon\nwest: hall\ncarrying: cup\n> you take the cup\n")
