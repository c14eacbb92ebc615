"""Which audit figure predicts the rise in real success: by hand."""

import json
from dataclasses import replace

import pytest

from dreamgym.bench.markdown import write_markdown
from dreamgym.bench.page import suite_page
from dreamgym.bench.predict import FIGURES, Audited, audit_figures, rank_interval, rank_predictors
from dreamgym.bench.suite import Cell, Stage, Suite
from dreamgym.bench.table import make_table

RISES = (0.0, 0.1, 0.2, 0.3, 0.4)


def audit(*, exact=0.9, precision=1.0, gap=0.0, unknown=5, is_open=True):
    """What `result.json` of an audit holds, as far as it is read."""
    return {
        "command": "audit",
        "one_step": {
            "exact": {"mean": exact}, "false_success": {"mean": 0.0},
            "invalid_refused": {"mean": 0.99}, "valid_refused": {"mean": 0.01},
        },
        "closed_loop": {"agreement": {"mean": 0.95}},
        "on_policy": [
            {"precision": {"mean": precision}, "recall": {"mean": 1.0}, "gap": {"mean": gap},
             "agreement": {"mean": 0.5, "count": 44}, "unknown": unknown, "failed": 1,
             "episodes": 50}
        ],
        "gate": {"open": is_open},
    }  # fmt: skip


def test_figures_are_read_off_an_audit():
    figures = audit_figures(audit(gap=-0.2, precision=None))
    assert figures["gap, absolute"] == 0.2
    assert (figures["unknown"], figures["failed"]) == (0.1, 0.02)
    assert figures["precision"] is None
    assert figures["told rightly"] == pytest.approx(0.5 * 44 / 50)
    assert set(audit_figures({"on_policy": []}).values()) == {None}


def test_predictors_by_hand():
    """Exact orders the rises perfectly, the gap in reverse, precision is there for three only."""
    dreams = [
        Audited("e", 0, audit_figures(audit(exact=0.5 + rise, gap=rise - 0.5)), rise)
        for rise in RISES
    ]
    dreams[:2] = [replace(one, figures={**one.figures, "precision": None}) for one in dreams[:2]]
    found = {one.figure: one for one in rank_predictors(dreams)}
    assert list(found) == list(FIGURES)
    assert found["exact"].correlation == pytest.approx(1)
    assert (found["exact"].low, found["exact"].high) == pytest.approx((1, 1))
    assert found["gap, absolute"].correlation == pytest.approx(-1)
    assert (found["precision"].correlation, found["precision"].dreams) == (None, 3)
    assert (found["recall"].correlation, found["recall"].low) == (None, None)


def test_environments_are_ordered_apart():
    dreams = [Audited(env, 0, {"exact": sign * rise}, rise) for env, sign in (("a", 1), ("b", -1))
              for rise in RISES]  # fmt: skip
    exact = [one.correlation for one in rank_predictors(dreams) if one.figure == "exact"]
    assert exact == pytest.approx([1, -1])


def test_an_interval_holds_its_mean_and_repeats():
    pairs = [(1, 2), (2, 1), (3, 4), (4, 3), (5, 5), (6, 7), (7, 6)]
    mean, low, high = rank_interval([pairs], seed=1)
    # 1 - 6 * 6 / (7 * 48)
    assert mean == pytest.approx(1 - 36 / 336)
    assert low < mean < high <= 1
    assert rank_interval([pairs], seed=1) == (mean, low, high)
    assert rank_interval([pairs[:3]], seed=1) == (None, None, None)


def test_seeds_are_ranked_apart():
    """The better start of seed 1 has little to gain; among its own dreams the order is the same."""
    dreams = [
        Audited("e", seed, {"exact": level + rise}, rise / (1 + 9 * seed))
        for seed, level in ((0, 0.0), (1, 0.6))
        for rise in RISES
    ]
    (found,) = [one for one in rank_predictors(dreams) if one.figure == "exact"]
    assert (found.correlation, found.dreams) == (pytest.approx(1), 10)


def leave(stage, root, result):
    folder = stage.folder(root)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("seed = 0\n")
    (folder / "run.json").write_text("{}")
    (folder / "metrics.jsonl").write_text("")
    (folder / "result.json").write_text(json.dumps(result))


def judged(stage, root, success):
    leave(stage, root, {"command": "eval", "success": {"mean": success, "episodes": 100}})


def cells_of(root, *, gated=False):
    """Five dreams, each better than the last; the first two have their gates shut."""
    start = Stage("start", ("eval", "start"))
    judged(start, root, 0.3)
    for number, rise in enumerate(RISES):
        end, looked = Stage(f"end-{number}", ("eval",)), Stage(f"audit-{number}", ("audit",))
        judged(end, root, 0.3 + rise)
        leave(looked, root, audit(exact=0.5 + rise, is_open=number > 1))
        yield Cell("e", f"dream-{number}", 0, end, start, looked, gated)


def test_the_table_tells_of_each_dream_and_which_figure_goes_with_the_rise(tmp_path):
    table = make_table(Suite("s", "About.", tuple(cells_of(tmp_path))), tmp_path)
    assert [cell.rise for cell in table.cells] == pytest.approx(RISES)
    assert [cell.gate for cell in table.cells] == ["shut"] * 2 + ["open"] * 3
    behind = {gate: table.rises(gate, "e") for gate in ("shut", "open")}
    assert (behind["shut"][0].mean, behind["shut"][1]) == (pytest.approx(0.05), 2)
    assert (behind["open"][0].mean, behind["open"][1]) == (pytest.approx(0.3), 3)
    assert behind["open"][0].seeds == 1, "dreams of one seed are one observation"
    told = write_markdown(table, command="c", failures={})
    assert "| e | exact | 1.00 | 1.00 to 1.00 | 5 |" in told
    assert "| e | recall |  |  | 5 |" in told
    steps = "0.000 | 0.900 | 0.990 | 0.010 | 0.950"
    policy = "1.000 | 1.000 | 0.000 | 0.100 | 0.020 | 0.440"
    assert f"| dream-4 | e | 0 | {steps} | {policy} | open | 0.300 | 0.700 | 0.400 |" in told
    assert "- e, gate open: 3 dreams, rise 0.300" in told
    assert "Which audit figure predicts" in suite_page(table, tmp_path)
    plain = json.loads(json.dumps(table.plain(), allow_nan=False))
    assert plain["predictors"][1]["correlation"] == pytest.approx(1)


def test_behind_a_shut_gate_the_start_counts(tmp_path):
    table = make_table(Suite("s", "About.", tuple(cells_of(tmp_path, gated=True))), tmp_path)
    assert [cell.success for cell in table.cells] == pytest.approx([0.3, 0.3, 0.5, 0.6, 0.7])
