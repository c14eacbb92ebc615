"""The code in docs/llm.md runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "llm.md"


def test_the_code_on_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    names["llm"]._thread.shutdown()


def test_the_table_of_dialects_is_complete():
    from dreamgym.llm.wire import DIALECTS

    table = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(table) == sorted(DIALECTS)
