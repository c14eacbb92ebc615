"""Your own algorithm: it says what each action was worth; models, losses and the loop are shared.

First it judges a made-up group, beside GRPO. Then a weak policy, which is made of three
demonstrations, practises twelve tasks of the real coin game with it: one seed, and the tasks that
it practises are those that it is judged by. In a dream, only the `World` of `Practice` differs.
Needs the extras `twx` and `train`.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dreamgym import Source, Split, build, open_world
from dreamgym.agents import Behaviour
from dreamgym.agents.policy_card import load_policy_card
from dreamgym.models import LocalLLM, load_model, load_tokenizer
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import GroupPlan
from dreamgym.train.algorithms import Algorithm, Credit, Grpo, Values, credit_by_group
from dreamgym.train.loop import LoopPlan, Practice, Trainee, UniformTasks, run_loop
from dreamgym.train.progress import Progress
from dreamgym.train.tokens import Floats, TokenEpisode, TokenGroup, Weaver
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import SampledTokens

SPEC = "twx/coin?numLocations=5&includeDoors=0"
TASKS = 12


@dataclass(frozen=True, slots=True)
class ShortWins:
    """A win is worth more the fewer turns it took; the group's median is the baseline."""

    per_turn: float = 0.05
    """Taken off for each turn."""

    @property
    def needs_values(self) -> bool:
        """It has no critic."""
        return False

    def credit(self, groups: Sequence[TokenGroup], values: Values | None = None) -> Credit:
        """Compare each episode with its group; failed ones are left out for us."""

        def judge(members: Sequence[TokenEpisode]) -> list[Floats] | None:
            worth = [sum(m.rewards) - self.per_turn * len(m.rewards) * m.success for m in members]
            above = np.array(worth) - np.median(worth)
            pairs = zip(above, members, strict=True)
            return [np.full(len(m.rewards), one) for one, m in pairs] if above.any() else None

        return credit_by_group(groups, judge)


def played(*rewards: float, failed: bool = False) -> TokenEpisode:
    """Make an episode whose policy read two tokens and said one, turn after turn."""
    weaver, read = Weaver(), tuple[int, ...]()
    for _ in rewards:
        weaver.add((*read, 5, 6), SampledTokens((7,), (-1.0,)))
        read = (*read, 5, 6, 7)
    return TokenEpisode(weaver.sequences(), rewards, success=sum(rewards) > 0, failed=failed)


def compare(*algorithms: Algorithm) -> None:
    """Show what algorithms make of one group."""
    quick, slow, lost = played(1.0), played(0.0, 0.0, 0.0, 1.0), played(0.0, 0.0)
    group = TokenGroup("made up", (quick, slow, lost, played(0.0, failed=True)))
    print("A group: won in one turn, won in four, lost in two, and one that broke. Token by token:")
    for algorithm in algorithms:
        credit = algorithm.credit([group])
        told = [" ".join(f"{one:+.2f}" for one in each.advantages) for each in credit.episodes]
        print(f"  {type(algorithm).__name__:10} {' | '.join(told)}")


def make_start() -> Path:
    """Record a little and clone three demonstrations: a policy that can speak."""
    for words in (
        f"collect --env {SPEC} --tasks 40 --episodes 100 --out recorded --set env.workers=1",
        "train --algo sft --store recorded --demos 3 --steps 8 --out start"
        " --set train.tokens_per_step=1024 --set train.threads=1"
        " --set policy.choose=known --set policy.mark_seen=true",
    ):
        command = [sys.executable, "-m", "dreamgym", *words.split()]
        subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Path("start/policy")


async def practise(folder: Path, algorithm: Algorithm) -> None:
    """Put the parts together and run the one training loop."""
    card, model = load_policy_card(folder), load_model(folder)
    llm = LocalLLM(model, load_tokenizer(folder), name="policy")
    trainee = Trainee(
        Behaviour("policy", build.make_model_agents(llm, card)),
        build.make_writer(llm, card),
        Learner(model, UpdatePlan(minibatches=2)),
        algorithm,
    )
    play = GroupPlan(members=8, max_steps=10)
    plan = LoopPlan(steps=8, groups=TASKS, play=play, learning_rate=5e-4, warmup_steps=1)

    def tell(progress: Progress, figures: dict[str, float]) -> None:
        success, turns = figures["reward/success"], figures["episodes/length"]
        print(f"  step {progress.step:2}: success {success:.2f}, {turns:.1f} turns")

    async with open_world(SPEC, workers=1) as world:
        info, tasks = await world.info(), await world.tasks(Split.TRAIN)
        answerer = Answerer(Source.REAL, info.version, info.mapper)
        practice = Practice(world, answerer, UniformTasks(tasks[:TASKS]))
        done = await run_loop(trainee, practice, plan, on_row=tell)
    await llm.close()
    print(f"That took {done.real_steps} real steps.")


if __name__ == "__main__":
    compare(Grpo(), ShortWins())
    print(f"\nPractice, {TASKS} tasks, eight episodes each in every step:")
    asyncio.run(practise(make_start(), ShortWins()))
