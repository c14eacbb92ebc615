"""Fine-tuning learns, measures, stops in time and says how long it will take."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from echo_task import echo
from random_models import random_llama

from dreamgym.errors import ConfigError
from dreamgym.models.samples import Sample
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan, SftProgress, rate_factor

PLAN = SftPlan(
    spans={"echo": 1.0, "end": 0.5},
    steps=40,
    tokens_per_step=300,
    eval_every=10,
    learning_rate=1e-2,
    warmup_steps=5,
)


def test_it_learns_what_is_marked() -> None:
    told: list[SftProgress] = []
    model = random_llama()
    result = fit(model, echo(200), plan=PLAN, held_out=echo(20, 1), on_progress=told.append)
    first, last = result.curve[0], result.curve[-1]
    assert last.loss < first.loss
    assert last.spans["echo"].loss < told[0].spans["echo"].loss / 2
    assert last.spans["end"].loss < told[0].spans["end"].loss / 2
    assert [point.step for point in result.curve] == [10, 20, 30, 40]
    assert not model.training
    assert result.steps == 40
    assert not result.stopped_early
    assert 0 <= result.padding < 0.1


def test_progress_is_told_after_every_step() -> None:
    told: list[SftProgress] = []
    fit(random_llama(), echo(50), plan=PLAN, held_out=echo(5, 1), on_progress=told.append)
    assert [progress.step for progress in told] == list(range(1, 41))
    assert [p.step for p in told if p.held_out is not None] == [10, 20, 30, 40]
    assert told[-1].seconds_left == 0.0
    assert all(progress.seconds_left > 0 for progress in told[:-1])
    assert told[5].tokens_per_second > 0
    assert told[0].learning_rate == pytest.approx(0.2e-2)
    assert max(progress.learning_rate for progress in told) == pytest.approx(1e-2)


def test_the_best_weights_are_kept() -> None:
    """Samples that contradict the held-out ones: training makes it worse, the start was best."""
    model = random_llama()
    kept: dict[int, torch.Tensor] = {}

    def look(progress: SftProgress) -> None:
        kept[progress.step] = model.embed.weight.detach().clone()

    wrong = [replace(sample, ids=(*sample.ids[:-1], 3)) for sample in echo(100)]
    plan = replace(PLAN, spans={"echo": 0.0, "end": 1.0}, patience=2, learning_rate=3e-2)
    result = fit(model, wrong, plan=plan, held_out=echo(10, 1), on_progress=look)
    losses = {point.step: point.loss for point in result.curve}
    assert result.best_step == min(losses, key=losses.__getitem__)
    assert torch.equal(model.embed.weight, kept[result.best_step])
    assert result.stopped_early
    assert result.steps == result.best_step + 20


def test_without_held_out_samples_the_last_weights_count() -> None:
    model = random_llama()
    before = model.embed.weight.detach().clone()
    result = fit(model, echo(30), plan=replace(PLAN, steps=5))
    assert result.curve == ()
    assert result.best_step == 5
    assert not torch.equal(model.embed.weight, before)


def test_large_batches_may_be_cut() -> None:
    """Adding up gradients of pieces is the gradient of the whole."""
    plan = replace(PLAN, steps=3, learning_rate=1e-3)
    whole, cut = random_llama(), random_llama()
    fit(whole, echo(100), plan=plan)
    fit(cut, echo(100), plan=replace(plan, tokens_per_pass=20))
    torch.testing.assert_close(whole.embed.weight, cut.embed.weight, atol=1e-4, rtol=1e-3)


def test_samples_may_be_made_anew_for_every_epoch() -> None:
    asked: list[int] = []

    def samples(epoch: int) -> list[Sample]:
        asked.append(epoch)
        return echo(40, seed=epoch)

    fit(random_llama(), samples, plan=replace(PLAN, steps=4, tokens_per_step=100))
    assert asked == sorted(set(asked))
    assert asked[:2] == [0, 1]


def test_a_budget_of_seconds_is_kept() -> None:
    start = time.monotonic()
    plan = replace(PLAN, steps=None, seconds=0.5, eval_every=1000)
    told: list[SftProgress] = []
    result = fit(random_llama(), echo(50), plan=plan, held_out=echo(3), on_progress=told.append)
    assert 0.5 <= time.monotonic() - start < 5
    assert [point.step for point in result.curve] == [result.steps]
    assert told[-1].learning_rate < told[len(told) // 2].learning_rate


def test_only_weights_that_ask_for_it_are_trained() -> None:
    model = random_llama()
    model.embed.weight.requires_grad_(False)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    fit(model, echo(20), plan=replace(PLAN, steps=2))
    changed = {n for n, weight in model.named_parameters() if not torch.equal(weight, before[n])}
    assert changed == before.keys() - {"embed.weight"}


def test_the_learning_rate_rises_stays_and_falls() -> None:
    plan = SftPlan(steps=100, warmup_steps=10, decay_share=0.5)
    rates = [rate_factor(plan, step=step, share=step / 100) for step in range(100)]
    assert rates[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert set(rates[10:51]) == {1.0}
    assert rates[75] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(0.02)
    assert rates[51:] == sorted(rates[51:], reverse=True)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"steps": None}, "either steps or seconds"),
        ({"seconds": 3.0}, "either steps or seconds"),
        ({"spans": {}}, "name at least one"),
        ({"spans": {"echo": -1.0}}, "weights from 0 up"),
        ({"tokens_per_step": 0}, "tokens_per_step is 0"),
    ],
)
def test_plans_that_cannot_be_followed_are_refused(
    change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        replace(PLAN, **change)


def test_samples_that_cannot_be_trained_on_are_refused() -> None:
    with pytest.raises(ConfigError, match="nothing to train on"):
        fit(random_llama(), [], plan=PLAN)
    long = Sample((1,) * 300, (1,) * 300)
    with pytest.raises(ConfigError, match="a sample of 300 tokens, but the model reads 256"):
        fit(random_llama(), echo(3), plan=PLAN, held_out=[long])
    with pytest.raises(ConfigError, match=r"span label 2; the plan names \['echo'\]"):
        fit(random_llama(), echo(3), plan=replace(PLAN, spans={"echo": 1.0}))


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    plan = replace(PLAN, steps=2)
    fit(random_llama(), echo(20), plan=plan, folder=tmp_path)
    with pytest.raises(ConfigError, match=r"another plan \(learning_rate: 0.01 -> 0.02\)"):
        fit(random_llama(), echo(20), plan=replace(plan, learning_rate=0.02), folder=tmp_path)
    with pytest.raises(ConfigError, match="other samples"):
        fit(random_llama(), echo(21), plan=plan, folder=tmp_path)


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    plan = replace(PLAN, steps=20)
    first, second = random_llama(), random_llama()
    result = fit(first, echo(30), plan=plan, held_out=echo(5, 1), folder=tmp_path)
    told: list[SftProgress] = []
    again = fit(
        second, echo(30), plan=plan, held_out=echo(5, 1), folder=tmp_path, on_progress=told.append
    )
    assert again == result
    assert told == []
    assert torch.equal(first.embed.weight, second.embed.weight)


def test_a_loss_that_is_no_number_ends_the_training() -> None:
    with pytest.raises(ConfigError, match=r"loss is nan at update \d+: begin again with a lower"):
        fit(random_llama(), echo(20), plan=replace(PLAN, learning_rate=1e30, warmup_steps=1))


def test_long_updates_are_not_lost_for_being_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dreamgym.models.sft.SAVE_SECONDS", 0.0)

    def interrupted(progress: SftProgress) -> None:
        if progress.step == 7:
            raise KeyboardInterrupt

    samples, plan = echo(20), replace(PLAN, steps=12)
    whole, cut = random_llama(), random_llama()
    fit(whole, samples, plan=plan)
    with pytest.raises(KeyboardInterrupt):
        fit(cut, samples, plan=plan, folder=tmp_path, on_progress=interrupted)
    made: list[int] = []
    fit(cut, samples, plan=plan, folder=tmp_path, on_progress=lambda now: made.append(now.step))
    assert 2 <= made[0] <= 8
    assert torch.equal(whole.embed.weight, cut.embed.weight)
