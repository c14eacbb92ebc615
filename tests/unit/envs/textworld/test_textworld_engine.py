"""The real engine, on real games: what it answers, what it refuses, and that its expert wins."""

import os
import random
import re
import warnings
from itertools import pairwise
from pathlib import Path

import pytest

from dreamgym.envs.spec import parse_spec
from dreamgym.envs.textworld.engine import make_engine
from dreamgym.envs.textworld.game import NO_VERB, TOO_MUCH
from dreamgym.envs.textworld.mapper import MAPPER_DIGEST, MAPPER_VERSION
from dreamgym.errors import EnvError
from dreamgym.protocols import Engine, Game
from dreamgym.types import Split, Task

pytestmark = [pytest.mark.textworld, pytest.mark.usefixtures("textworld_cache")]

GOLDEN = Path(__file__).parents[3] / "golden" / "textworld"
SPECS = {
    "simple": "textworld/simple",
    "coin_collector": "textworld/coin_collector?level=5",
    "treasure_hunter": "textworld/treasure_hunter?level=13",
    "cooking": "textworld/cooking",
}


def transcript(game, opening, commands):
    lines = [f"goal: {opening.task.goal}", opening.observation.text]
    for command in commands:
        result = game.step(command)
        flags = [name for name in ("refused", "terminated", "truncated", "success")
                 if getattr(result, name)]  # fmt: skip
        lines += [f"> {command}", f"reward {result.reward:g} {' '.join(flags)}".rstrip(),
                  result.observation.text]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(SPECS))
def test_golden_states(play, kind):
    game, opening = play(SPECS[kind])
    before = ["dance", "go up", "examine cookbook", "look", "take moon"]
    text = transcript(game, opening, [*before, *game.expert()])
    path = GOLDEN / f"{kind}.v{MAPPER_VERSION}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "the mapper changed: raise MAPPER_VERSION, UPDATE_GOLDEN=1"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(SPECS))
def test_the_expert_wins_five_of_five_held_out_games(open_games, kind):
    wins = 0
    for game in open_games(SPECS[kind], 5):
        game.reset(0)
        results = [game.step(command) for command in game.expert()]
        assert not any(result.refused for result in results)
        wins += results[-1].success and results[-1].terminated
        game.close()
    assert wins == 5


def test_the_expert_still_wins_after_detours(play):
    game, opening = play("textworld/simple")
    choose = random.Random(7)
    result = None
    for turn in range(60):
        plan = game.expert()
        harmless = [one for one in opening.observation.admissible if not one.startswith("eat")]
        result = game.step(plan[0] if turn % 2 else choose.choice(harmless))
        opening = result
        if result.terminated:
            break
    assert result.success


def test_off_its_path_the_expert_reads_the_recipe_in_passing(play):
    game, _ = play("textworld/cooking")
    game.step("take knife from table")
    plan = game.expert()
    assert plan[0] == "examine cookbook"
    game.step(plan[0])
    assert "examine cookbook" not in game.expert()


def test_engine_and_game_keep_the_protocol(play):
    engine = make_engine(parse_spec("textworld/coin_collector?level=5"))
    game, _ = play("textworld/coin_collector?level=5")
    assert isinstance(engine, Engine)
    assert isinstance(game, Game)
    assert re.fullmatch(r"textworld \d+\.\d+.*", engine.version)
    assert engine.mapper == MAPPER_DIGEST


def test_listing_makes_no_game(textworld_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path))
    engine = make_engine(parse_spec("textworld/cooking?train=7&dev=3&test=2"))
    listed = {split: engine.tasks(split) for split in Split}
    assert [len(tasks) for tasks in listed.values()] == [7, 3, 2]
    assert len({task.id for tasks in listed.values() for task in tasks}) == 12
    assert len({task.key for tasks in listed.values() for task in tasks}) == 12
    assert listed[Split.TRAIN] == engine.tasks(Split.TRAIN)
    assert all(task.env == "textworld/cooking?dev=3&test=2&train=7" for task in listed[Split.DEV])
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_names_no_game_is_refused():
    engine = make_engine(parse_spec("textworld/simple"))
    with pytest.raises(EnvError, match="keys look like 'train-17'"):
        engine.open(Task("x", "textworld/simple", "../../etc", Split.TRAIN))


def test_rewards_are_differences_of_the_score(play):
    game, _ = play("textworld/simple")
    rewards = [game.step(command).reward for command in game.expert()]
    assert sum(rewards) == game._state["max_score"]
    assert set(rewards) <= {0.0, 1.0}


def test_losing_ends_the_game_without_success(play):
    game, opening = play("textworld/simple")
    food = re.search(r"put the (\w+) on the stove", opening.task.goal)[1]
    for command in game.expert()[:-1]:
        game.step(command)
    result = game.step(f"eat {food}")
    assert (result.terminated, result.success, result.truncated) == (True, False, False)
    assert "You lost." in result.observation.text
    assert result.observation.admissible == ()
    assert game.expert() == ()
    with pytest.raises(EnvError, match="reset it"):
        game.step("look")
    assert game.reset(0) == opening


def test_the_step_limit_truncates(play):
    game, _ = play("textworld/coin_collector?level=5&maxSteps=3")
    results = [game.step("look") for _ in range(3)]
    assert [result.truncated for result in results] == [False, False, True]
    assert not results[-1].terminated


def test_a_win_in_the_last_step_is_a_win(play):
    game, _ = play("textworld/coin_collector?level=5&maxSteps=5")
    result = [game.step(command) for command in game.expert()][-1]
    assert (result.success, result.terminated, result.truncated) == (True, True, False)


@pytest.mark.parametrize(
    "command",
    ["save", "restore", "script", "quit", "restart", "undo", "version", "print_state", "superbrief",
     "tw-print player id", "tw-extra-infos description", "restrict commands", "notify off", "yes",
     "again", "", "   ", "\u00f6ffne t\u00fcr", "x" * 500, "wait", "\x00"],
)  # fmt: skip
def test_commands_to_the_interpreter_do_nothing(play, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    game, opening = play("textworld/simple")
    result = game.step(command)
    assert result.refused
    assert result.observation.text == f"{opening.observation.text}\n> {NO_VERB}"
    assert result.observation.admissible == opening.observation.admissible
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    ["open antique trunk. take old key", "open antique trunk, then look", "take all",
     "open antique trunk and chest drawer", "open antique trunk; look"],
)  # fmt: skip
def test_several_commands_at_once_are_refused(play, command):
    game, opening = play("textworld/simple")
    result = game.step(command)
    assert result.refused
    assert result.observation.text == f"{opening.observation.text}\n> {TOO_MUCH}"


def test_a_newline_does_not_smuggle_a_second_command_in(play):
    game, opening = play("textworld/simple")
    result = game.step("open antique trunk\nopen chest drawer")
    assert result.refused
    assert result.observation.text.startswith(opening.observation.text)


def test_case_and_spaces_do_not_matter(play):
    game, _ = play("textworld/simple")
    assert not game.step("  Open   ANTIQUE trunk ").refused


def test_refusals_of_listed_commands_count_as_refused(play):
    game, _ = play("textworld/cooking")
    take = next(one for one in game.expert() if one.startswith("take"))
    game.step(take)
    result = game.step("prepare meal")
    assert result.refused
    assert "Something still needs to be" in result.observation.text


def test_the_same_actions_give_the_same_episode(open_games):
    def wander(game):
        opening, choose = game.reset(0), random.Random(3)
        observation, seen = opening.observation, [opening]
        for _ in range(25):
            result = game.step(choose.choice(observation.admissible))
            observation = result.observation
            seen.append(result)
            if result.terminated:
                break
        return seen

    (first,), (second,) = open_games("textworld/cooking", 1), open_games("textworld/cooking", 1)
    assert wander(first) == wander(second) == wander(first)


def test_playing_prints_nothing(play, capfd):
    game, _ = play("textworld/treasure_hunter?level=13")
    for command in ("look", "nonsense", *game.expert()):
        game.step(command)
    assert capfd.readouterr() == ("", "")


def seen_in(description, names):
    """Return the names that a text mentions, the longest first, so that no name hides another."""
    text, found = description.lower(), set()
    for name in sorted(names, key=len, reverse=True):
        pattern = rf"(?<![\w-]){re.escape(name.lower())}(?![\w-])"
        if re.search(pattern, text):
            found.add(name)
            text = re.sub(pattern, "#", text)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["simple", "cooking"])
def test_states_name_what_the_engine_describes(play, kind):
    """Walk about with a second, untouched interpreter that prints its own words beside ours."""
    import textworld

    game, opening = play(SPECS[kind])
    with warnings.catch_warnings(action="ignore"):
        raw = textworld.start(
            game._env.unwrapped.gamefile, textworld.EnvInfos(description=True, inventory=True)
        )
    infos = [info for info in raw.reset()["game"].infos.values() if info.name]
    names = {info.name for info in infos if info.type not in ("r", "RECIPE", "ingredient", "slot")}
    choose, admissible, state = random.Random(11), opening.observation.admissible, raw.state
    for _ in range(40):
        useful = [one for one in admissible if not one.startswith(("eat", "examine", "look"))]
        result = game.step(choose.choice([*useful, *game.expert()[:1]]))
        state, _, _ = raw.step(game._done[-1]) if not result.refused else (state, 0, False)
        if result.terminated:
            break
        theirs = f"{state['description']}\n{state['inventory']}"
        ours = "\n".join(
            line for line in result.observation.text.splitlines()
            if re.match(r"here: |carrying: |exits: ", line)
        )  # fmt: skip
        assert seen_in(ours, names) == seen_in(theirs, names), theirs
        for way in ("north", "east", "south", "west"):
            assert (way in seen_in(ours, [way])) == (way in seen_in(theirs, [way])), theirs
        admissible = result.observation.admissible
    raw.close()


def test_what_textworld_cannot_follow_is_taken_back(play):
    """Its facts have no rule for examining what is carried in a cooking game."""
    game, _ = play("textworld/cooking")
    for command in ("take knife from table", "examine cookbook"):
        before = game.step(command)
    result = game.step("examine knife")
    assert result.refused
    assert result.observation.text == f"{before.observation.text}\n> {TOO_MUCH}"
    assert result.observation.admissible == before.observation.admissible
    results = [game.step(command) for command in game.expert()]
    assert results[-1].success


def test_short_forms_count_as_what_they_stand_for(play):
    game, _ = play("textworld/cooking")
    plan = game.expert()
    assert plan[0] == "examine cookbook"
    result = game.step("x the cookbook")
    assert not result.refused
    assert "\nread: recipe of " in result.observation.text
    assert game.expert() == plan[1:]


def test_openings_of_a_split_differ(open_games):
    engine = make_engine(parse_spec("textworld/cooking"))
    openings = []
    for game in open_games("textworld/cooking", 5):
        openings.append(game.reset(0))
        game.close()
    texts = [opening.observation.text for opening in openings]
    assert all(one != other for one, other in pairwise(sorted(texts)))
    assert all({"kitchen", "cookbook"} <= engine.entities(opening) for opening in openings)
