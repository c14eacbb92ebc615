"""The shape of the code: import levels, no cycles, who may use what, sizes."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dreamgym"
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FILES
}

LEVELS = {
    "types": 0, "protocols": 0, "errors": 0,
    "codec": 1, "extras": 1, "files": 1, "states": 1, "in_order": 1, "loop_thread": 1, "config": 1,
    "runs": 1, "page": 1,
    "envs": 2, "replay": 2, "records": 2, "llm": 2, "models": 2,
    "agents": 3, "experience": 3,
    "rollout": 4, "testing": 4,
    "eval": 5, "audit": 5, "tasks": 5,
    "train": 6, "report": 6,
    "build": 7, "dreams": 7, "bench": 7,
    "jobs": 8, "gym": 8,
    "cli": 9,
    "__main__": 10,
}  # fmt: skip
SAME_LEVEL = {("protocols", "types"), ("config", "files"), ("runs", "files"), ("codec", "files"),
              ("dreams", "build")}  # fmt: skip
"""Single files of one level that may look at another; packages of one level never do."""

CONFINED = {
    "torch": ("models", "train"),
    "transformers": ("models",),
    "peft": ("models",),
    "rich": ("cli",),
    "typer": ("cli",),
    "fastapi": (),
    "sqlite3": ("replay", "llm/cache", "files.py"),
    "usearch": ("replay",),
    "textworld": ("envs/textworld", "envs/alfworld"),
    "alfworld": ("envs/alfworld",),
    "textworld_express": ("envs/textworld_express",),
    "py4j": ("envs/textworld_express",),
    "pyarrow": ("records",),
    "gymnasium": ("envs/gym", "gym.py"),
}
"""Third-party packages and the only places that may import them."""

FUNCTION_CAP, FILE_CAP, CLASS_CAP, PARAMETER_CAP, COMMAND_CAP = 60, 450, 300, 9, 150
EXCEPTIONS: dict[str, str] = {
    "cli/annotate.py:annotate": "one parameter per option is how typer reads a command line",
    "cli/audit.py:audit": "one parameter per option is how typer reads a command line",
    "cli/collect.py:collect": "one parameter per option is how typer reads a command line",
    "cli/play.py:play": "one parameter per option is how typer reads a command line",
    "cli/fit.py:fit": "one parameter per option is how typer reads a command line",
    "cli/train.py:train": "one parameter per option is how typer reads a command line",
    "cli/evaluate.py:evaluate": "one parameter per option is how typer reads a command line",
    "cli/vary.py:vary": "one parameter per option is how typer reads a command line",
    "cli/bench.py:bench": "one parameter per option is how typer reads a command line",
    "experience/world.py:__init__": "what a dream is made of: each part and check by itself",
}
"""Named exceptions to the caps, each with its reason."""


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every imported module, also those inside functions and under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found


def ours(path: Path) -> set[str]:
    parts = {name.split(".")[1] for name in imports(path) if name.startswith("dreamgym.")}
    return parts - {"__version__", part_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_the_levels(path):
    part = part_of(path)
    if part == "__init__":
        return  # names for type checkers only: test_public_api sees that nothing is imported
    for other in ours(path):
        below = LEVELS[other] < LEVELS[part]
        assert below or (part, other) in SAME_LEVEL, f"{part} may not import {other}"


def test_every_part_has_a_level():
    parts = {part_of(path) for path in FILES} - {"__init__"}
    assert parts <= LEVELS.keys()


def test_modules_form_no_cycle():
    graph = {name: imports(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    graph["dreamgym"] = set()  # for type checkers only
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


@pytest.mark.parametrize("package", CONFINED)
def test_third_party_packages_stay_where_they_belong(package):
    allowed = tuple(str(SOURCE / place) for place in CONFINED[package])
    users = [path for path in FILES if any(n.split(".")[0] == package for n in imports(path))]
    strays = [str(path) for path in users if not str(path).startswith(allowed or ("-",))]
    assert not strays


def test_no_vague_names():
    vague = {"utils", "util", "common", "helpers", "misc", "base"}
    assert not [path for path in FILES if path.stem in vague]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_sizes_stay_readable(path):
    text = path.read_text()
    place = str(path.relative_to(SOURCE))
    cap = COMMAND_CAP if place.startswith("cli/") else FILE_CAP
    assert len(text.splitlines()) <= cap or place in EXCEPTIONS, f"{place}: more than {cap} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            named = f"{place}:{node.name}" in EXCEPTIONS
            assert named or len(arguments) <= PARAMETER_CAP + 1, f"{place}:{node.name} parameters"
            assert node.end_lineno - node.lineno < FUNCTION_CAP, f"{place}:{node.name} is too long"
        elif isinstance(node, ast.ClassDef):
            assert node.end_lineno - node.lineno < CLASS_CAP, f"{place}:{node.name} is too long"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text())), "a module opens with what it is"


def test_exceptions_are_still_needed():
    for name in EXCEPTIONS:
        place, _, function = name.partition(":")
        assert f"def {function}(" in (SOURCE / place).read_text(), f"{name} is gone"
