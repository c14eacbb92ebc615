"""The audit job: open the dream, the data and the policies, measure, and write what was found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dreamgym import __version__, build, dreams
from dreamgym.agents.behaviour import BEHAVIOURS
from dreamgym.audit import AuditPlan, AuditReport, Player, Subject, Thresholds, audit
from dreamgym.audit.page import audit_page
from dreamgym.config import AuditConfig, RunConfig
from dreamgym.dreams import Dream
from dreamgym.envs.world import RealWorld
from dreamgym.errors import ConfigError
from dreamgym.files import write_atomically
from dreamgym.runs import RunDir
from dreamgym.types import Source, Split, Trajectory, derive_seed

if TYPE_CHECKING:
    from dreamgym.llm.breaker import EventSink
    from dreamgym.llm.stack import StackedLLM

PAGE = "audit.html"
"""The page to read, in the run directory."""


async def run_audit(
    config: RunConfig,
    run: RunDir,
    *,
    on_progress: Callable[[float, str], None] = lambda share, stage: None,
    on_llm: EventSink = lambda name, **details: None,
) -> AuditReport:
    """Audit as the settings say, and leave the result in the run directory."""
    wanted = config.audit
    for name, value in (("world", wanted.world), ("data", wanted.data)):
        if not value:
            raise ConfigError(f"audit.{name} is not set: add --{name} and a folder")
    # Before the model is loaded, which takes a while.
    _store_of(wanted)
    async with AsyncExitStack() as stack:
        # One server for the dream and its judge, so that one ceiling holds for both.
        server = None
        if wanted.judge or wanted.world == dreams.SERVER:
            listeners = (run.event, on_llm)
            server = build.make_llm(config.llm, folder=run.path, listeners=listeners)
            stack.push_async_callback(server.close)
        dream = dreams.open_named(wanted.world, config, llm=server)
        stack.push_async_callback(dream.close)
        return await audit_dream(dream, config, run, server=server, on_progress=on_progress)


async def audit_dream(
    dream: Dream,
    config: RunConfig,
    run: RunDir,
    *,
    server: StackedLLM | None = None,
    on_progress: Callable[[float, str], None] = lambda share, stage: None,
) -> AuditReport:
    """Audit a dream that is open; the server judges where a judge is wanted."""
    wanted = config.audit
    # First, because a fit or a recording meanwhile would make another dream of it.
    audited = _what(dream, config)
    async with AsyncExitStack() as stack:
        spec = wanted.env or dream.card.env
        trajectories = read_held_out(config, spec)
        real = None
        names = tuple(name.strip() for name in wanted.policies.split(",") if name.strip())
        if names:
            real = build.make_world(replace(config.env, spec=spec))
            stack.push_async_callback(real.close)
        players = [await _player(name, real, config) for name in names if real is not None]
        run.begin()
        report = await audit(
            Subject(
                dream=dream.world,
                embedder=build.make_embedder(config.replay.embedder),
                memory=dream.memory,
                real=real,
                remembered=dreams.recorded_openings(dream.store, dream.card.env).keys(),
                judge=server if wanted.judge else None,
            ),
            trajectories,
            players=players,
            plan=plan_of(wanted),
            on_progress=on_progress,
        )
    run.result(
        {
            "command": "audit",
            "env": spec,
            **audited,
            "data": wanted.data,
            "split": wanted.split,
            "policies": list(names),
            "seed": config.seed,
            "version": __version__,
            "llm": server.metrics() if server is not None else None,
            **report.plain(),
        }
    )
    page = audit_page(
        report,
        title=f"Audit of {wanted.world}",
        about=f"{spec}, {wanted.split} split, recorded episodes from {wanted.data}",
    )
    write_atomically(run.path / PAGE, page)
    run.event("finished", open=not report.reasons)
    return report


def _what(dream: Dream, config: RunConfig) -> dict[str, object]:
    """Return what is audited, as the gate asks for it: another dream may lie in its folder soon."""
    world, env = config.audit.world, dream.card.env
    count = dreams.count_remembered(dream.store.stats(), env)
    second = config.dream.second
    return {
        "world": world,
        "served": config.llm.model if world == dreams.SERVER else None,
        "dream": asdict(config.dream),
        "weights": dreams.weights_of(world),
        "second_weights": dreams.weights_of(second) if second else None,
        "remembered": {"env": env, "transitions": count},
    }


def thresholds_of(config: AuditConfig) -> Thresholds:
    """Return what the gate asks for."""
    return Thresholds(**{name: getattr(config, name) for name in Thresholds.__dataclass_fields__})


def plan_of(config: AuditConfig) -> AuditPlan:
    """Return how the audit goes about it."""
    return AuditPlan(
        concurrency=config.concurrency,
        luck_episodes=config.luck_episodes,
        luck_repeats=config.luck_repeats,
        judge_cases=config.judge,
        gamma=config.gamma,
        delta=config.delta,
        thresholds=thresholds_of(config),
    )


async def _player(name: str, real: RealWorld, config: RunConfig) -> Player:
    wanted = config.audit
    slots = await build.make_slots(
        real,
        split=wanted.split,
        episodes=wanted.policy_episodes,
        policy=build.make_policy(
            name, noise=config.collect.noise, probe_share=config.collect.probe_share
        ),
        max_steps=wanted.max_steps,
        seed=config.seed,
        repeat=False,
    )
    return Player(name, slots, in_dream=name not in BEHAVIOURS)


def _store_of(config: AuditConfig) -> Path:
    path = Path(config.data)
    path = path / "experience.sqlite" if path.is_dir() else path
    if not path.is_file():
        raise ConfigError(f"there is no experience store at {path}")
    return path


def read_held_out(config: RunConfig, spec: str) -> tuple[Trajectory, ...]:
    """Return the recorded real trajectories that the audit looks at, drawn by the seed."""
    wanted = config.audit
    path = _store_of(wanted)
    store = build.make_store(path, config.replay)
    try:
        found = [
            one
            for one in store.trajectories(source=Source.REAL, split=Split(wanted.split), env=spec)
            if one.error is None and one.steps
        ]
    finally:
        store.close()
    if not found:
        raise ConfigError(
            f"{path} holds no real trajectories of {spec}, split {wanted.split}: record some with "
            f"`dreamgym collect --env '{spec}' --split {wanted.split}`, or choose another --split"
        )
    drawn = sorted(found, key=lambda one: derive_seed(config.seed, "audit", one.id))
    return tuple(drawn[: wanted.episodes])
