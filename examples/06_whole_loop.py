"""The whole loop in miniature: record, clone, dream, audit, practise in the dream, judge for real.

Each stage is a job of the command line, called from Python, with a run folder of its own. The game
is small (five rooms), the dream is fitted for 50 small updates and practice has eight steps, so
that all of it takes half a minute of one processor: one seed of a toy, and its intervals say so.
`make demo` does the same at a size that means more, `dreamgym bench` over seeds. Needs the
extras `twx` and `train`.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from dreamgym import load_config
from dreamgym.config import RunConfig, dump_toml
from dreamgym.jobs.audit import run_audit
from dreamgym.jobs.collect import run_collect
from dreamgym.jobs.evaluate import run_evaluate
from dreamgym.jobs.fit import run_fit
from dreamgym.jobs.reinforce import run_rl
from dreamgym.jobs.train import run_sft
from dreamgym.runs import RunDir, open_run
from dreamgym.train.progress import Progress

STORE = "recorded/experience.sqlite"
SETTINGS = (
    "env.spec=twx/coin?numLocations=5&includeDoors=0", "env.workers=1",
    "collect.tasks=40", "collect.episodes=200", "collect.max_steps=15",
    "policy.choose=known", "policy.mark_seen=true",
    "train.demos=3", "train.steps=8", "train.tokens_per_step=1024", "train.threads=1",
    "fit.steps=50", "fit.tokens_per_step=1024", "fit.eval_every=50", "fit.threads=1",
    "audit.episodes=30", "audit.policy_episodes=40", "audit.max_steps=10", "audit.luck_episodes=0",
    "rl.steps=8", "rl.groups=8", "rl.max_steps=10", "rl.learning_rate=5e-4", "rl.warmup_steps=1",
    "rl.kl=0.0", "rl.unknown=no-reward", "rl.eval_every=0", "rl.threads=1",
    "eval.episodes=100", "eval.max_steps=10", "eval.overlap=false",
)  # fmt: skip
"""`dreamgym config` says what each of them means."""


@contextmanager
def stage(name: str, *settings: str) -> Iterator[tuple[RunConfig, RunDir]]:
    """Hold the run folder of a stage, with settings that differ from the common ones."""
    config = load_config(settings=(*SETTINGS, *settings))
    run = open_run(Path(name), config=dump_toml(config), about={}, resume=False)
    try:
        yield config, run
    finally:
        run.close()


async def record() -> None:
    """Record train tasks; walks in dev tasks, for the dream to know them; more, for the audit."""
    with stage("recorded") as (config, run):
        done = await run_collect(config, run)
    print(f"recorded: {done.summary.episodes} episodes, {done.summary.transitions} real steps")
    dev = ("collect.split=dev", "collect.episodes=120")
    with stage("walks", *dev, "collect.policy=random", f"replay.store={STORE}") as (config, run):
        await run_collect(config, run)
    with stage("held", *dev, "seed=100") as (config, run):
        await run_collect(config, run)


async def judge(policy: str) -> None:
    """Play held-out test tasks for real."""
    with stage(f"{policy}-judged", f"eval.policy={policy}") as (config, run):
        report, _ = await run_evaluate(config, run)
    print(f"{policy}: real success {report.success} test tasks\n")


async def make_dream() -> tuple[str, ...]:
    """Fit a dream and audit it; return why one should not train in it."""
    with stage("dream", f"replay.store={STORE}") as (config, run):
        fitted = run_fit(config, run)
    print(f"dream: {fitted.parameters:,} parameters after {fitted.result.steps} updates")
    about = ("audit.world=dream", "audit.data=held", "audit.policies=start")
    with stage("audit", *about) as (config, run):
        report = await run_audit(config, run)
    for name, value in asdict(report.figures).items():
        print(f"  {name.replace('_', ' ')}: {value}")
    return report.reasons


async def practise() -> None:
    """Let the policy learn by trial in the dream; the gate of the audit must be open."""

    def tell(progress: Progress, figures: dict[str, float]) -> None:
        print(f"  step {progress.step}: success in the dream {figures['reward/success']:.2f}")

    how = ("train.algo=grpo", "policy.model=start", "rl.world=dream", "rl.gate=audit")
    with stage("dreamt", *how) as (config, run):
        done = (await run_rl(config, run, on_row=tell)).progress
    print(f"practised: {done.dream_steps} dreamt steps, {done.real_steps} real ones")


async def main() -> None:
    """Go through all stages."""
    await record()
    with stage("start", f"replay.store={STORE}") as (config, run):
        cloned = run_sft(config, run)
    print(f"start: cloned from {len(cloned.demonstrations)} demonstrations")
    await judge("start")
    reasons = await make_dream()
    if reasons:
        print(f"the gate is shut, nobody is to train here: {'; '.join(reasons)}")
        return
    print("the gate is open\n")
    await practise()
    await judge("dreamt")


if __name__ == "__main__":
    asyncio.run(main())
