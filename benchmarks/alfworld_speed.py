"""How fast ALFWorld steps: as it comes, with the parser memo, and through `Game.step`. CPU time.

    python benchmarks/alfworld_speed.py [--games 6] [--steps 40] [--official /data/json_2.1.1]

A random walker plays dev tasks; the very same commands are then given to upstream's own environment
without and with the memo. "outside": the share of `Game.step` not spent in the simulation, finding
out what is visible, writing the state. Resets: a game never seen, one whose translation is on disk,
one that is loaded. Experts are asked at the start, walkthroughs left aside.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from dataclasses import dataclass, field
from statistics import median

from dreamgym.envs.alfworld.engine import AlfworldEngine, make_engine
from dreamgym.envs.alfworld.game_text import NO_GOAL, GameText
from dreamgym.envs.alfworld.memo import install_memo
from dreamgym.envs.alfworld.upstream import load_upstream
from dreamgym.envs.spec import parse_spec
from dreamgym.types import Split


@dataclass
class Tally:
    """Seconds of CPU, by what they were spent on."""

    stepping: float = 0.0
    simulating: float = 0.0
    steps: int = 0
    new: list[float] = field(default_factory=list)
    stored: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)
    planner: list[float] = field(default_factory=list)
    handcoded: list[float] = field(default_factory=list)


def timed(call, *arguments):
    """Return what a call returns, and its CPU time."""
    start = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - start


def watch(simulation, tally):
    """Let a simulation's steps be timed on their own."""
    step = simulation.step

    def timed_step(command):
        accepted, seconds = timed(step, command)
        tally.simulating += seconds
        return accepted

    simulation.step = timed_step


def walk(spec, games, steps):
    """Play random commands and return what was measured, with each game's text and commands."""
    tally, played = Tally(), []
    engine = make_engine(parse_spec(spec + "&asides=yes&maxSteps=1000000"))
    for task in engine.tasks(Split.DEV)[:games]:
        rng, commands = random.Random(task.key), []
        game = engine.open(task)
        opening, seconds = timed(game.reset, 0)
        tally.new.append(seconds)
        opening, seconds = timed(game.reset, 0)
        tally.loaded.append(seconds)
        game._plan = ()
        tally.planner.append(timed(game.expert)[1])
        watch(game._simulation, tally)
        observation = opening.observation
        while len(commands) < steps:
            commands.append(rng.choice(observation.admissible))
            result, seconds = timed(game.step, commands[-1])
            tally.stepping += seconds
            observation = result.observation
            if result.terminated:
                break
        tally.steps += len(commands)
        played.append((game._simulation.house.text, commands))
        game.close()
    engine.close()
    return tally, played


def ask_again(spec, games, tally):
    """Time resets from disk, and the handcoded expert, in a fresh engine."""
    engine: AlfworldEngine = make_engine(parse_spec(spec + "&expert=handcoded"))
    for task in engine.tasks(Split.DEV)[:games]:
        game = engine.open(task)
        tally.stored.append(timed(game.reset, 0)[1])
        tally.handcoded.append(timed(game.expert)[1])
        game.close()
    engine.close()


def play_upstream(text: GameText, commands):
    """Give commands to upstream's own environment; return all it says and the CPU time."""
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
    from textworld import EnvInfos
    from textworld.envs.pddl.pddl import PddlEnv

    infos = EnvInfos(won=True, admissible_commands=True)
    env = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
    grammar = text.grammar.replace(NO_GOAL, text.goal)
    env.load({"pddl_domain": text.domain, "grammar": grammar, "pddl_problem": text.problem})
    said = [env.reset().feedback]
    start = time.process_time()
    for command in commands:
        state, _, _ = env.step(command)
        said += [state.feedback, *state.admissible_commands]
    return said, time.process_time() - start


def compare(played, steps):
    """Return upstream's steps per second, plain and with the memo, on the same commands."""
    upstream = load_upstream()
    plain = memo = 0.0
    count = 0
    for text, commands in played:
        expected, seconds = play_upstream(text, commands[:steps])
        plain += seconds
        remove = install_memo(upstream)
        said, seconds = play_upstream(text, commands[:steps])
        remove()
        memo += seconds
        count += min(steps, len(commands))
        assert said == expected, "the memo changed the text"
    return count / plain, count / memo


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=6)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--upstream-steps", type=int, default=15)
    parser.add_argument("--official", help="folder json_2.1.1 of the official games")
    arguments = parser.parse_args()
    specs = [f"alfworld/generated?size={size}" for size in ("small", "medium", "large")]
    if arguments.official:
        specs.append(f"alfworld/official?path={arguments.official}")
    columns = (
        ("steps/s", "upstream", "memo", "ours", "memo x", "ours x", "outside"),
        ("ms", "reset new", "stored", "loaded", "planner", "handcoded"),
    )
    tables = [[row] for row in columns]
    for spec in specs:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["DREAMGYM_CACHE"] = cache
            tally, played = walk(spec, arguments.games, arguments.steps)
            ask_again(spec, arguments.games, tally)
        plain, memo = compare(played, arguments.upstream_steps)
        ours = tally.steps / tally.stepping
        outside = 1 - tally.simulating / tally.stepping
        name = spec.split("path=")[0].removesuffix("?")
        speeds = (f"{plain:.1f}", f"{memo:.0f}", f"{ours:.0f}")
        ratios = (f"{memo / plain:.1f}", f"{ours / plain:.0f}", f"{outside:.0%}")
        tables[0].append((name, *speeds, *ratios))
        kinds = (tally.new, tally.stored, tally.loaded, tally.planner, tally.handcoded)
        tables[1].append((name, *(f"{1000 * median(seconds):.1f}" for seconds in kinds)))
    for table in tables:
        for first, *rest in table:
            print(f"{first:<36}" + "".join(f"{cell:>11}" for cell in rest))
        print()


if __name__ == "__main__":
    main()
