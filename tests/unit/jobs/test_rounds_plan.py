"""Rounds: what comes next follows from the results that are there, and from nothing else."""

from dataclasses import replace

import pytest
from left_rounds import ALARM, leave_dream, leave_round, plan

from dreamgym.config import AuditConfig, RunConfig, dump_toml, load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.rounds_plan import gate_reasons, next_stage, read_plan


def test_the_first_round_is_a_training_like_any_other(tmp_path):
    stage = next_stage(plan(), tmp_path)
    assert (stage.name, stage.job, stage.config.seed) == ("round-1", "rl", 7)
    assert stage.config.policy.model == "/d/start"
    rl = stage.config.rl
    assert (rl.rounds, rl.steps, rl.world, rl.gate) == (1, 30, "/d/dream", "/d/audit")
    assert rl.store == str(tmp_path / "round-1/experience.sqlite")


def test_a_round_that_made_all_its_steps_is_the_last(tmp_path):
    leave_round(tmp_path, 1, steps=30)
    assert next_stage(plan(), tmp_path) is None


def test_an_alarm_leads_to_repair_audit_and_what_is_left(tmp_path):
    leave_round(tmp_path, 1, steps=12, why=ALARM)
    fit = next_stage(plan(), tmp_path)
    assert (fit.name, fit.job, fit.config.seed) == ("dream-2", "fit", 3)
    wanted = fit.config.fit
    assert (wanted.model, wanted.steps, wanted.transitions) == ("/d/dream/model", 150, 0)
    assert fit.config.dream.references == 5
    assert fit.config.replay.store == str(tmp_path / "experience.sqlite")

    leave_dream(tmp_path, 2)
    audit = next_stage(plan(), tmp_path)
    assert (audit.name, audit.job) == ("audit-2", "audit")
    assert audit.config.audit.world == str(tmp_path / "dream-2")
    assert audit.config.audit.policies == str(tmp_path / "round-1")
    assert (audit.config.audit.data, audit.config.audit.episodes) == ("/d/held", 11)

    leave_dream(tmp_path, 2, precision=1.0)
    again = next_stage(plan(), tmp_path)
    assert (again.name, again.config.rl.steps) == ("round-2", 18)
    assert again.config.rl.world == str(tmp_path / "dream-2")
    assert again.config.rl.gate == str(tmp_path / "audit-2")
    assert again.config.policy.model == str(tmp_path / "round-1")
    # Else the watch would look at the very tasks that the dream was mended with.
    assert again.config.seed != 7

    leave_round(tmp_path, 2, steps=8, why=ALARM)
    assert next_stage(plan(), tmp_path).config.fit.model == str(tmp_path / "dream-2/model")
    assert next_stage(plan("rl.rounds=2"), tmp_path) is None


def test_without_a_gate_nobody_audits(tmp_path):
    leave_round(tmp_path, 1, steps=12, why=ALARM)
    leave_dream(tmp_path, 2)
    stage = next_stage(plan(gated=False), tmp_path)
    assert (stage.name, stage.config.rl.gate) == ("round-2", "off")


def test_a_gate_that_is_shut_ends_it(tmp_path):
    leave_round(tmp_path, 1, steps=12, why=ALARM)
    leave_dream(tmp_path, 2, precision=0.4)
    assert next_stage(plan(), tmp_path) is None
    (reason,) = gate_reasons(plan(), tmp_path, 2)
    assert "on-policy precision is 0.400" in reason


def test_there_is_nothing_to_repair_with_or_for(tmp_path):
    leave_round(tmp_path, 1, steps=12, why="exploitation: of something", watched=0)
    assert next_stage(plan(), tmp_path) is None
    leave_round(tmp_path, 1, steps=30, why=ALARM)
    assert next_stage(plan(), tmp_path) is None


def test_budgets_are_those_of_all_rounds(tmp_path):
    wanted = plan("rl.then_real=1000", "rl.steps=31", gated=False)
    first = next_stage(wanted, tmp_path).config.rl
    assert (first.steps, first.then_real) == (11, 334)
    # Six of its eleven steps in the dream, then three for real.
    leave_round(tmp_path, 1, steps=9, why="plateau", to="real", dreamt=6, online=300)
    leave_dream(tmp_path, 2)
    second = next_stage(wanted, tmp_path).config.rl
    assert (second.steps, second.then_real) == (13, 350)
    leave_round(tmp_path, 2, steps=15, why="all 13", to="real", dreamt=13, online=350)
    leave_dream(tmp_path, 3)
    third = next_stage(wanted, tmp_path).config.rl
    assert (third.steps, third.then_real) == (12, 350)
    leave_round(tmp_path, 3, steps=14, why="all 12", to="real", dreamt=12, online=350)
    assert next_stage(wanted, tmp_path) is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["rl.rounds=0"], r"rl\.rounds is 0; it must be at least 1"),
        (["rl.refit_steps=0"], r"rl\.refit_steps is 0"),
        (["rl.rounds=2", "rl.watch='stop'"], "name a dream with --world"),
        (["rl.rounds=2", "rl.world='d'"], r"rl\.watch=stop or return, or .* with --then-real"),
        (["rl.rounds=2", "rl.world='d'", "rl.watch='note'"], "nothing would end the first"),
        (["rl.rounds=2", "rl.world='d'", "rl.watch='stop'", "rl.store='s'"], "leave rl.store"),
        (["rl.rounds=9", "rl.world='d'", "rl.watch='stop'", "rl.steps=8"], "less than one for"),
        (["rl.rounds=3", "rl.world='d'", "rl.then_real=700"], "not pay for one group in each"),
        (["rl.rounds=3", "rl.world='d'", "rl.then_real=720", "rl.switch_step=11"], "has 10 of"),
    ],
)  # fmt: skip
def test_rounds_that_cannot_be_made_are_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        load_config(settings=wrong)


def test_how_dream_and_audit_were_made_is_read_before_anything_is(small_dream, tmp_path):
    config = plan(f"rl.world='{small_dream / 'dream'}'", gated=False).config
    found = read_plan(config)
    assert found.fit.fit.steps == 40
    assert found.remembered == small_dream / "data/experience.sqlite"
    assert found.audit is None
    gated = replace(config, rl=replace(config.rl, gate=str(tmp_path)))
    with pytest.raises(ConfigError, match="audited again as it was before.*no config.toml"):
        read_plan(gated)
    audited = RunConfig(audit=AuditConfig(data=str(tmp_path / "held.sqlite")))
    (tmp_path / "config.toml").write_text(dump_toml(audited))
    with pytest.raises(ConfigError, match=r"held\.sqlite, which is gone"):
        read_plan(gated)
    (tmp_path / "held.sqlite").touch()
    assert read_plan(gated).audit == audited
    with pytest.raises(ConfigError, match="holds no dream"):
        read_plan(plan(f"rl.world='{tmp_path}'").config)
