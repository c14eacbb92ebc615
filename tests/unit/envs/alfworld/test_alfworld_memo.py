"""The memo: at least twice as fast on the same steps (more as a rule), the same to the byte."""

import random
import time

import pytest
from upstream_games import game_data, start_upstream

from dreamgym.envs.alfworld.memo import install_memo

pytestmark = pytest.mark.alfworld


def play_upstream(env, steps):
    """Play commands drawn by a seed; return every word and the CPU time of the steps."""
    rng = random.Random(7)
    state = env.reset()
    said = [state.feedback, *state.admissible_commands]
    started = time.process_time()
    for _ in range(steps):
        command = rng.choice([*state.admissible_commands, "open sesame"])
        state, _, _ = env.step(command)
        said += [command, state.feedback, *state.admissible_commands, str(state.won)]
    return said, time.process_time() - started


@pytest.mark.slow
def test_with_the_memo_the_same_steps_give_the_same_bytes_in_less_time(upstream, record_property):
    plain = quick = 0.0
    for data in game_data(upstream, 2):
        env = start_upstream(data)
        expected, seconds = play_upstream(env, 20)
        plain += seconds
        remove = install_memo(upstream)
        try:
            play_upstream(env, 2)
            said, seconds = play_upstream(env, 20)
        finally:
            remove()
        quick += seconds
        assert said == expected
    record_property("memo_speedup", plain / quick)
    assert plain / quick >= 3, f"only {plain / quick:.1f} times as fast"


def test_the_memo_goes_with_the_last_engine_that_uses_it(upstream):
    textgen, rule = upstream.textgen, upstream.rule
    before = (
        textgen._parse_and_convert,
        textgen.deepcopy,
        rule.__dict__["parse_conjunctive_query"],
    )

    def now():
        return (
            textgen._parse_and_convert,
            textgen.deepcopy,
            rule.__dict__["parse_conjunctive_query"],
        )

    first, second = install_memo(upstream), install_memo(upstream)
    assert all(old is not new for old, new in zip(before, now(), strict=True))
    first()
    assert now() != before
    second()
    assert now() == before


def test_remembered_symbols_are_not_shared_between_derivations(upstream):
    remove = install_memo(upstream)
    try:
        one = upstream.textgen._parse_and_convert("You see #it#", rule_name="symbols")
        two = upstream.textgen._parse_and_convert("You see #it#", rule_name="symbols")
        assert [str(symbol) for symbol in one] == [str(symbol) for symbol in two]
        one[-1].context = {"mine": 1}
        assert "mine" not in two[-1].context
    finally:
        remove()
