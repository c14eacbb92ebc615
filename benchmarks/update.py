"""How many tokens a policy update goes through per processor second, as episodes grow.

    python benchmarks/update.py [--preset 1m] [--turns 8 16 32 64] [--choices 0] [--window -1]

Random episodes: a prompt of 40 tokens, then turns of 6 action tokens and 20 read ones. The same
number of turns in all, in fewer and longer episodes. One GRPO epoch, one minibatch, one thread.
With `--choices`, actions are chosen among so many candidates instead of written. With `--window`,
prompts show so many earlier turns at least and fewer than twice as many, as `policy.window` does:
"tokens" are those that are read, some of them twice then, and "turns per second" is what compares.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from dreamgym.agents.policy_tokens import first_shown
from dreamgym.models.tiny import make_tiny
from dreamgym.train.algorithms import Grpo
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.tokens import TokenEpisode, TokenGroup, Weaver
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import SampledTokens

VOCABULARY, ALL_TURNS, MEMBERS, ACTION = 1000, 512, 4, 6
EVERYTHING = 10**9


def random_ids(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Return random tokens."""
    return tuple(map(int, rng.integers(2, VOCABULARY, count)))


def episode(rng: np.random.Generator, turns: int, *, choices: int, window: int) -> TokenEpisode:
    """Make an episode that ends with a reward or without."""
    weaver, head, past = Weaver(), random_ids(rng, 40), [()]
    for _ in range(turns):
        first = first_shown(list(map(len, past)), room=EVERYTHING, window=window)
        prompt = (*head, *(token for turn in past[first:] for token in turn))
        said = random_ids(rng, ACTION)
        if choices:
            others = tuple(random_ids(rng, ACTION) for _ in range(choices - 1))
            weaver.choose(prompt, (said, *others), chosen=0, logprob=-float(np.log(choices)))
        else:
            weaver.add(prompt, SampledTokens(said, (-float(np.log(VOCABULARY)),) * ACTION))
        past[-1] = (*past[-1], *said)
        past.append(random_ids(rng, 20))
    return TokenEpisode(weaver.sequences(), (0.0,) * (turns - 1) + (float(rng.integers(0, 2)),))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="1m")
    parser.add_argument("--turns", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--choices", type=int, default=0)
    parser.add_argument("--window", type=int, default=-1, help="-1 shows all earlier turns")
    options = parser.parse_args()
    torch.set_num_threads(1)
    columns = ("turns", "episodes", "tokens", "weaving s", "credit s", "update s",
               "tokens per second", "turns per second")  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for turns in options.turns:
        rng = np.random.default_rng(turns)
        model = make_tiny(options.preset, VOCABULARY, seed=0)
        clock = [time.process_time()]
        groups = [
            TokenGroup(
                str(n),
                tuple(
                    episode(rng, turns, choices=options.choices, window=options.window)
                    for _ in range(MEMBERS)
                ),
            )
            for n in range(ALL_TURNS // turns // MEMBERS)
        ]
        clock.append(time.process_time())
        credit = Grpo().credit(groups)
        clock.append(time.process_time())
        learner = Learner(model, UpdatePlan(learning_rate=1e-5))
        learner.improve(credit, PolicyObjective(), step=0)
        clock.append(time.process_time())
        learner.improve(credit, PolicyObjective(), step=1)
        clock.append(time.process_time())
        tokens = sum(s.size for one in credit.episodes for s in one.episode.sequences)
        woven, judged, _, updated = np.diff(clock)
        cells = (turns, len(credit.episodes), tokens, f"{woven:.3f}", f"{judged:.3f}")
        played = turns * len(credit.episodes)
        row = [*cells, f"{updated:.2f}", f"{tokens / updated:.0f}", f"{played / updated:.1f}"]
        print(f"| {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
