"""Documents describe what is: links, commands, figures and names are checked against the code."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "examples/*.md")
PAGES = sorted(page for place in PLACES for page in ROOT.glob(place))
SHELL = re.compile(r"```(?:bash|sh|console)\n(.*?)```", re.DOTALL)


def commands_in(page: Path):
    for block in SHELL.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ").split("  #")[0].strip()
            if line.startswith(("dreamgym ", "make ")):
                yield line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{target} does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_shell_commands_exist_with_their_options(page):
    from typer.main import get_command

    from dreamgym.cli.main import app

    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in commands_in(page):
        tool, *words = shlex.split(line)
        if tool == "make":
            assert {word for word in words if "=" not in word} <= targets, line
            continue
        command = get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {name for option in command.params for name in getattr(option, "opts", [])}
        used = {word.split("=")[0] for word in words if re.match(r"^--?[a-z]", word)}
        assert used <= known | {"--help"}, f"{line}: {used - known}"
        assert not hasattr(command, "commands") or not words or words[0] == "--help", line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_that_is_named_exists(page):
    """`package/file.py` and `package.module.name` in backticks are real."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for name in re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w/.-]+\.\w+)`", text):
        assert (ROOT / name).exists(), f"{name} does not exist"
    for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text):
        places = (ROOT / name, ROOT / "src/dreamgym" / name)
        assert any(place.exists() for place in places), f"{name} does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_figure_is_left_to_be_filled_in(page):
    assert not re.findall(r"^[A-Z_]{4,}$", page.read_text(), re.MULTILINE)


def test_the_page_of_commands_is_current():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from commands import render
    finally:
        sys.path.pop(0)
    page = (ROOT / "docs/commands.md").read_text()
    assert page == render(), "run `python docs/commands.py`"


def test_the_map_of_levels_is_the_one_that_is_checked():
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        from test_architecture import LEVELS
    finally:
        sys.path.pop(0)
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", (ROOT / "AGENTS.md").read_text(), re.MULTILINE)
    drawn = {
        name.strip("`/ ").removesuffix(".py"): int(level)
        for level, names in rows
        for name in names.split(",")
    }
    assert drawn == LEVELS


def test_the_changelog_knows_the_version():
    import dreamgym

    assert f"## [{dreamgym.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_starts_with_its_two_commands():
    text = (ROOT / "README.md").read_text()
    first = next(commands_in(ROOT / "README.md"))
    assert first == "make demo"
    assert "make test" in text
    assert text.index("docs/images/") < text.index("```bash"), "a picture comes first"


def test_continuous_integration_runs_what_the_readme_says():
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in lines if line.startswith("make")] == ["make test"]


EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def test_every_example_is_listed():
    page = (ROOT / "examples/README.md").read_text()
    listed = re.findall(r"^\| \[`(\w+\.py)`\]", page, re.MULTILINE)
    assert listed == [path.name for path in EXAMPLES]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path, tmp_path):
    assert ast.get_docstring(ast.parse(path.read_text())), "an example says what it shows"
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
