"""The audit job: settings in, a result, a page and a verdict out."""

import asyncio
import json
from dataclasses import replace

import pytest
from stairs_engine import dreaming, told

from dreamgym.config import AuditConfig, DreamConfig, load_config
from dreamgym.dreams import card_for, dream_over
from dreamgym.errors import ConfigError
from dreamgym.jobs.audit import audit_dream, plan_of, read_held_out, run_audit
from dreamgym.jobs.collect import run_collect
from dreamgym.jobs.gate import check_world_gate
from dreamgym.llm import ChaosServer, Fault
from dreamgym.replay import copy_store, open_store
from dreamgym.runs import open_run
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

SPEC = "py/stairs_engine:make_engine"
MADE_OF = ("weights", "second_weights", "remembered")


def new_run(path):
    return open_run(path, config="", about={}, resume=False)


def settings(folder, *more):
    return load_config(
        settings=[
            f"env.spec='{SPEC}'", "env.workers=1", f"audit.data='{folder / 'held.sqlite'}'",
            "audit.world='stairs'", "audit.luck_episodes=2", *more,
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with recorded steps to remember with, and with held-out ones."""
    place = tmp_path_factory.mktemp("audit")
    for name, split in (("memory", "train"), ("held", "dev")):
        config = settings(
            place, f"replay.store='{place / name}.sqlite'", f"collect.split='{split}'",
            "collect.episodes=12", "collect.max_steps=8",
        )  # fmt: skip
        run = new_run(place / name)
        asyncio.run(run_collect(config, run))
        run.close()
    return place


def audit(folder, run, *more, memory=None):
    async def once():
        card = card_for(memory or folder / "memory.sqlite", SPEC, DreamConfig())
        dream = dream_over(dreaming(), card, config=DreamConfig())
        try:
            return await audit_dream(dream, settings(folder, *more), run)
        finally:
            await dream.close()

    try:
        return asyncio.run(once())
    finally:
        run.close()


def test_a_true_dream_passes_and_leaves_result_and_page(folder, tmp_path):
    report = audit(
        folder, new_run(tmp_path / "run"), "audit.policies='stairs_engine:climber, random'"
    )
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert report.reasons == ()
    assert result["gate"] == {
        "open": True, "reasons": [], "thresholds": result["gate"]["thresholds"],
    }  # fmt: skip
    assert result["env"] == SPEC
    assert [one["policy"] for one in result["on_policy"]] == ["stairs_engine:climber"]
    assert result["on_policy"][0]["precision"]["mean"] == 1.0
    assert result["cost"]["real_steps"] == report.cost.real_steps > 0
    assert result["familiar_tasks"]["mean"] == 0.0
    assert "random (retold)" in result["closed_loop"]["policies"]
    assert "The gate is <b>open</b>" in (tmp_path / "run" / "audit.html").read_text()


@pytest.fixture
def vouched(folder, tmp_path):
    """A folder with a dream that passed its audit, and the settings that train in it."""
    memory = tmp_path / "memory.sqlite"
    copy_store(folder / "memory.sqlite", memory)
    for name in ("dream", "second"):
        model = tmp_path / name / "model"
        model.mkdir(parents=True)
        (model / "config.json").write_text("{}")
        (model / "model.safetensors").write_bytes(name.encode())
        card_for(memory, SPEC, DreamConfig()).save(tmp_path / name)
    dream, second = tmp_path / "dream", f"dream.second='{tmp_path / 'second'}'"
    audit(folder, new_run(tmp_path / "audit"), "audit.policies='stairs_engine:climber, random'",
          f"audit.world='{dream}'", second, memory=memory)  # fmt: skip
    gate = f"rl.gate='{tmp_path / 'audit'}'"
    trained = settings(folder, f"rl.world='{dream}'", gate, second)
    check_world_gate(trained)
    return tmp_path, trained


def record_more(store, env):
    """Add an episode that shows something new."""
    task = Task(f"{env}#0", env, "0", Split.TRAIN, goal="climb to the top")
    made = Provenance(Source.REAL, "visitor", engine="stairs 1", mapper="plain")
    step = Step(Action("jump"), StepResult(Observation("the roof")))
    with open_store(store) as opened:
        opened.add([Trajectory(f"new {env}", task, Observation("stair 0"), (step,),
                               StopReason.STEP_LIMIT, made)])  # fmt: skip


def test_an_audit_vouches_for_no_other_weights(vouched):
    place, trained = vouched
    (place / "dream/model/model.safetensors").write_bytes(b"fitted again")
    with pytest.raises(ConfigError, match=r"a dream with the weights \w+, not of a dream with the"):
        check_world_gate(trained)
    # A training that goes on is none the wiser about a dream that was fitted meanwhile.
    with pytest.raises(ConfigError, match="weights"):
        check_world_gate(trained, begun=True)


def test_an_audit_vouches_for_no_other_second_opinion(vouched):
    place, trained = vouched
    (place / "second/model/model.safetensors").write_bytes(b"fitted again")
    with pytest.raises(ConfigError, match=r"the second opinion's weights \w+, not of a dream with"):
        check_world_gate(trained)


def test_an_audit_vouches_for_no_other_memory(vouched):
    place, trained = vouched
    count = json.loads((place / "audit/result.json").read_text())["remembered"]["transitions"]
    record_more(place / "memory.sqlite", "another/environment")
    check_world_gate(trained)
    record_more(place / "memory.sqlite", SPEC)
    told = f"remembers {count} transitions, not of a dream that remembers {count + 1} "
    with pytest.raises(ConfigError, match=told):
        check_world_gate(trained)
    # What a training has made for real itself does not keep it from going on.
    check_world_gate(trained, begun=True)
    other = replace(trained, replay=replace(trained.replay, store=str(place / "memory.sqlite")))
    with pytest.raises(ConfigError, match=told):
        check_world_gate(other)


def test_an_audit_that_does_not_say_what_the_dream_was_made_of_vouches_as_before(vouched):
    place, trained = vouched
    file = place / "audit/result.json"
    result = json.loads(file.read_text())
    file.write_text(json.dumps({k: v for k, v in result.items() if k not in MADE_OF}))
    (place / "dream/model/model.safetensors").write_bytes(b"fitted again")
    record_more(place / "memory.sqlite", SPEC)
    check_world_gate(trained)


def test_without_policies_no_real_step_is_taken_and_the_gate_stays_shut(folder, tmp_path):
    report = audit(folder, new_run(tmp_path / "run"))
    assert report.cost.real_steps == 0
    assert report.on_policy == ()
    assert "on-policy precision was not measured" in report.reasons


FAIR = {"causal_consistency": 2, "diversity": 1, "informativeness": 1, "hallucination": 2}


def told_or_judged(prompt):
    """Answer steps as the staircase does, and judge only what was refused."""
    if "You judge a simulator" not in prompt:
        return told(prompt)
    if "The simulator says: the action is refused" in prompt:
        return json.dumps({"rubric_scores": FAIR})
    return "Splendid, ten out of ten!"


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_a_model_over_http_is_audited_and_judged_over_one_server(folder, tmp_path, rate):
    spoilt = (Fault.SERVER_ERROR, Fault.CUT_JSON, Fault.EMPTY_TEXT, Fault.HANG_UP)
    run = new_run(tmp_path / "run")
    with ChaosServer(told_or_judged, rate=rate, kinds=spoilt, seed=3) as server:
        config = settings(
            folder, "audit.world='llm'", f"replay.store='{folder / 'memory.sqlite'}'",
            f"llm.url='{server.base_url}'", "llm.model='chaos'", "llm.retries=4",
            "audit.judge=12", "dream.longest_answer=300",
        )  # fmt: skip
        report = asyncio.run(run_audit(config, run))
    run.close()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert report.one_step.steps > report.one_step.failed
    assert (server.counts["right"] < server.counts["requests"]) == (rate > 0)
    assert report.one_step.figures.exact.mean == 1.0, "what was delivered is right"
    assert result["judge"]["cases"] == 12
    assert 0 < result["judge"]["unread"] < 12
    assert result["judge"]["diversity"]["mean"] == 1.0, "what cannot be read is no zero"
    assert result["judge"]["diversity"]["count"] == 12 - result["judge"]["unread"]
    assert result["llm"]["llm/billed_calls"] <= server.counts["requests"]
    assert result["served"] == "chaos"
    asked = {payload["max_tokens"] for payload in server.payloads}
    assert asked == {200, 300}, "verdicts and steps"


def test_a_model_that_was_not_fitted_needs_a_store(folder, tmp_path):
    run = new_run(tmp_path / "run")
    config = settings(folder, "audit.world='llm'", "llm.url='http://127.0.0.1:9/v1'",
                      "llm.model='none'")  # fmt: skip
    with pytest.raises(ConfigError, match="store is needed, none was named: give --store"):
        asyncio.run(run_audit(config, run))
    run.close()


def test_the_same_seed_draws_the_same_episodes(folder):
    few = settings(folder, "audit.episodes=5")
    drawn = [one.id for one in read_held_out(few, SPEC)]
    assert len(drawn) == 5
    assert drawn == [one.id for one in read_held_out(few, SPEC)]
    other = read_held_out(settings(folder, "audit.episodes=5", "seed=1"), SPEC)
    assert drawn != [one.id for one in other]


def test_what_is_missing_is_told(folder, tmp_path):
    with pytest.raises(ConfigError, match="no experience store"):
        read_held_out(settings(folder, "audit.data='nowhere'"), SPEC)
    with pytest.raises(ConfigError, match=r"collect --env .* --split train"):
        read_held_out(settings(folder, "audit.split='train'"), SPEC)
    run = new_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="--world"):
        asyncio.run(run_audit(settings(folder, "audit.world=''"), run))
    with pytest.raises(ConfigError, match="holds no dream"):
        asyncio.run(run_audit(settings(folder, f"audit.world='{tmp_path}'"), run))
    run.close()


def test_every_threshold_of_the_settings_reaches_the_gate():
    config = AuditConfig(min_precision=0.5, max_gap=0.4, min_wins=1, max_failed=0.9)
    wanted = plan_of(config).thresholds
    assert (wanted.min_precision, wanted.max_gap, wanted.min_wins, wanted.max_failed) == (
        0.5, 0.4, 1, 0.9,
    )  # fmt: skip
    assert plan_of(replace(config, judge=7)).judge_cases == 7


@pytest.mark.parametrize(
    "setting",
    ["split='all'", "episodes=0", "luck_repeats=-1", "max_gap=1.5", "gamma=1.0", "delta=-1.0"],
)
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ConfigError, match="audit"):
        load_config(settings=[f"audit.{setting}"])
