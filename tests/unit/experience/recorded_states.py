"""States and steps of the golden files of all environment families, for tests of this package."""

import re
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden"
_TWX_STEP = re.compile(r"\$ (.*)\nengine: .*\n(-?[\d.]+)(.*)\n((?:.+\n?)*)")
_STEP = re.compile(r"> (.*)\nreward (\S+)(.*)")


def golden_steps():
    """Yield (family, goal, state, action, next_state, flags) of every recorded step."""
    for path in sorted(GOLDEN.glob("twx/*.txt")):
        goal, opening, rest = path.read_text().split("\n\n", 2)
        state = opening
        for action, reward, flags, after in _TWX_STEP.findall(rest):
            after = after.rstrip("\n")
            yield path, goal[6:], state, action, after, {**_flags(flags), "reward": float(reward)}
            state = after
    for family in ("alfworld", "textworld"):
        for path in sorted(GOLDEN.glob(f"{family}/*.txt")):
            yield from _played(path)


def _played(path):
    goal, *lines = path.read_text().rstrip("\n").split("\n")
    state, action, flags, body = None, None, None, []

    def step():
        return path, goal[6:], state, action, "\n".join(body), flags

    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("reward ") and action is not None and not body:
            reward, *names = line[7:].split()
            flags = {**_flags(" ".join(names)), "reward": float(reward)}
        elif line.startswith("> ") and following.startswith("reward "):
            if action is not None:
                yield step()
            state, action, body = "\n".join(body), line[2:], []
        else:
            body.append(line)
    yield step()


def _flags(text):
    return {name: name in text for name in ("refused", "terminated", "success")}


STEPS = list(golden_steps())
STATES = sorted({text for step in STEPS for text in (step[2], step[4])})
