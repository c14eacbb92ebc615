"""The report job: what it writes where, and which pages it leaves alone."""

import json

import pytest

from dreamgym.config import dump_toml
from dreamgym.config.bench import BenchConfig
from dreamgym.errors import ConfigError
from dreamgym.jobs.report import run_report
from made_runs import ENV, make_audit, make_evaluation, make_run, make_trial


def rate(mean):
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "episodes": 100}


def make_demo(path, *, finished=True, reasons=()):
    """Leave a demo as its stages leave it: policies judged for real, and learning in between."""
    result = {
        "env": ENV, "split": "test", "gate": {"open": not reasons, "reasons": list(reasons)},
        "real_success": {"warm_start": rate(0.4), "dream": None if reasons else rate(0.7),
                         "sim_to_real": None if reasons else rate(0.8)},
        "real_transitions": {"offline": 4321, "online_dream": 0, "online_sim_to_real": 1999,
                             "audit": 30, "evaluation": 77},
        "seconds": {"total": 90.0}, "dream_transitions": 5,
    }  # fmt: skip
    make_run(path, command="demo", settings={}, result=result if finished else None)
    make_evaluation(path / "start-judged", mean=0.4)
    make_audit(path / "audit", opened=not reasons)
    if not reasons:
        make_trial(path / "dreamt", world="dream")
        make_evaluation(path / "dreamt-judged", mean=0.7)
    return path


def test_a_page_lies_in_the_first_run_or_where_one_says(tmp_path):
    runs = [make_trial(tmp_path / f"{seed}", seed=seed) for seed in range(2)]
    assert run_report(runs) == runs[0] / "report.html"
    assert run_report(runs, out=runs[1]) == runs[1] / "report.html"
    assert "Words" in run_report(runs, out=tmp_path / "a.html", title="Words").read_text()
    with pytest.raises(ConfigError, match="choose another name"):
        run_report(runs, out=runs[0] / "result.json")
    with pytest.raises(ConfigError, match="at least one"):
        run_report([])


def test_the_page_of_a_demo_is_made_again_as_it_was(tmp_path):
    demo = make_demo(tmp_path / "demo")
    page = run_report([demo]).read_text()
    for words in (f"DreamGym demo: {ENV}", "What came of it", "after sim-to-real", "4,321",
                  "One dev task, before and after", "Success over training",
                  "Judged for real"):  # fmt: skip
        assert words in page, words
    assert run_report([demo], out=tmp_path / "mine.html", title="Mine").read_text() != page
    shut = make_demo(tmp_path / "shut", reasons=["precision is low"])
    assert "Nothing was trained: <ul><li>precision is low" in run_report([shut]).read_text()


def make_bench(path, **stages):
    chosen = BenchConfig("table1", "tiny", "coin8", "start", "0", **stages)
    made = make_run(path, command="bench table1", settings={}, result={})
    (path / "config.toml").write_text(dump_toml(chosen))
    return made


def test_what_tells_more_is_not_overwritten_and_the_runs_inside_are_named(tmp_path):
    bench = make_bench(tmp_path / "bench")
    inner = make_trial(bench / "coin8-0/grpo-real-1234")
    make_evaluation(bench / "coin8-0/a-judged")
    demo = make_demo(tmp_path / "demo")
    for place in (bench, demo):
        (place / "report.html").write_text("good")
    for runs, out in (
        ([bench], None), ([bench], tmp_path / "out.html"), ([demo, inner], None),
        ([inner, demo], None), ([inner], bench), ([inner], demo / "report.html"),
        ([demo], bench),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=r"report\.html"):
            run_report(runs, out=out)
    with pytest.raises(ConfigError, match=rf"the runs inside: {inner}, .*a-judged$"):
        run_report([bench])
    with pytest.raises(ConfigError, match="demo/dreamt, "):
        run_report([demo, inner])
    assert {place.joinpath("report.html").read_text() for place in (bench, demo)} == {"good"}
    assert not (tmp_path / "out.html").exists()


def test_a_demo_that_goes_on_and_stages_elsewhere(tmp_path):
    going = make_demo(tmp_path / "demo", finished=False)
    with pytest.raises(ConfigError, match="it is not finished. Report on .*demo/dreamt"):
        run_report([going])
    assert not (going / "report.html").exists()
    inner = make_trial(tmp_path / "stages/coin8-0/grpo-real-1234")
    bench = make_bench(tmp_path / "bench", stages=str(tmp_path / "stages"))
    with pytest.raises(ConfigError, match=f"inside: {inner}$"):
        run_report([bench])
    assert json.loads((bench / "result.json").read_text())["command"] == "bench"
