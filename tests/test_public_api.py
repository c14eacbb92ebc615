"""The names that users may rely on, and what importing the package costs."""

import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import dreamgym

EXPECTED = sorted(
    [
        "Action",
        "Agent",
        "ConfigError",
        "DreamGymError",
        "Embedder",
        "Engine",
        "Env",
        "EnvError",
        "EnvSpec",
        "ExperienceStore",
        "Game",
        "LLM",
        "Observation",
        "Opening",
        "Provenance",
        "RealWorld",
        "Source",
        "Split",
        "Step",
        "StepResult",
        "StopReason",
        "Task",
        "Trajectory",
        "Transition",
        "World",
        "__version__",
        "check_env",
        "collect",
        "load_config",
        "make_behaviour",
        "make_engine",
        "measure_overlap",
        "open_store",
        "open_world",
        "plan_slots",
        "run_episode",
    ]
)


def test_the_public_names_are_these():
    assert sorted(dreamgym.__all__) == sorted(EXPECTED)
    assert dir(dreamgym) == sorted(EXPECTED)


def test_type_checkers_see_the_same_names():
    """Strict ones take `import X as X` for public, and plain imports for nobody else's business."""
    tree = ast.parse(Path(dreamgym.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    shown = [alias.asname for node in block.body for alias in node.names]
    assert sorted(["__version__", *shown]) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_public_name_is_there(name):
    assert getattr(dreamgym, name) is not None


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'make_dream'"):
        _ = dreamgym.make_dream


def test_the_version_is_the_installed_one():
    assert version("dreamgym") == dreamgym.__version__


HEAVY = ("torch", "transformers", "textworld", "alfworld", "usearch", "rich", "typer", "gymnasium")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    ["dreamgym", "dreamgym.types", "dreamgym.envs.world", "dreamgym.replay", "dreamgym.rollout"],
)
def test_importing_brings_nothing_heavy(module):
    code = f"import {module}, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code) == "[]"


def test_importing_is_quick():
    """About half a second of processor time, for everything that the loop needs."""
    code = (
        "import time; start = time.process_time()\n"
        "import dreamgym, dreamgym.protocols, dreamgym.codec, dreamgym.config\n"
        "import dreamgym.envs.world, dreamgym.replay, dreamgym.rollout\n"
        "print(time.process_time() - start)"
    )
    assert min(float(run(code)) for _ in range(5)) < 0.6


def test_importing_says_nothing_and_changes_nothing():
    code = (
        "import os, random; before = (dict(os.environ), random.getstate())\n"
        "import dreamgym.rollout, dreamgym.replay, dreamgym.envs.world\n"
        "print(before == (dict(os.environ), random.getstate()))"
    )
    assert run(code) == "True"
