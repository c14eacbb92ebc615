"""Suites: stages shared, run once, resumed; tables over seeds."""

import asyncio
import fcntl
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dreamgym.bench import Cell, Stage, Suite, make_suite, make_table, run_suite
from dreamgym.bench.known import KnownCells
from dreamgym.bench.looks import curve, looks_section, minutes, online
from dreamgym.bench.markdown import write_markdown
from dreamgym.bench.page import suite_page
from dreamgym.bench.run import seconds_left
from dreamgym.bench.suite import Inside
from dreamgym.bench.table import BenchTable, CellResult
from dreamgym.errors import ConfigError, RecordError
from dreamgym.jobs.bench import run_bench
from dreamgym.runs import open_run

SUCCESS = {"start": (0.2, 0.3, 0.4), "grpo-dream": (0.5, 0.5, 0.8), "grpo-real": (0.5, 0.6, 0.7)}


class Player:
    """Does what commands would do: leaves run directories with results, and counts."""

    def __init__(self, *, breaks=()):
        self.played, self.breaks, self.most, self.now = [], breaks, 0, 0

    async def __call__(self, words, log):
        resumed = words[-1] == "--resume"
        out = Path(words[words.index("--out") + 1])
        self.played.append((words[0], out.name, resumed))
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        out.mkdir(parents=True, exist_ok=True)
        if any(out.name.startswith(name) for name in self.breaks):
            log.write_text("error: the gate is shut\n")
            return 2
        leave(out, words)
        return 0


def leave(out, words):
    seed = int(words[words.index("--seed") + 1])
    result = {"command": words[0], "env": "e", "seed": seed, "seconds": 60.0}
    rows = []
    if words[0] == "eval":
        arm = out.name.removeprefix("judged-").rpartition("-")[0].replace("clone", "start")
        result |= {"success": {"mean": SUCCESS.get(arm, (0.1,) * 3)[seed], "low": 0, "high": 1,
                               "episodes": 100}, "transitions": 1000, "policy": arm}  # fmt: skip
    elif words[0] == "train" and "grpo" in words:
        online = 0 if "--then-real" not in words and "real" not in words else 1600
        result |= {"real_transitions": {"offline": 0, "online": online, "evaluation": 10}}
        rows = [{"step": n, "real/success": n / 4, "real/steps_online": online * n / 4,
                 "time/rollout": 1.0} for n in range(5)]  # fmt: skip
    elif words[0] in ("train", "fit"):
        result |= {"real_transitions": {"offline": 700 if words[0] == "fit" else 300, "online": 0}}
    elif words[0] == "audit":
        result |= {"cost": {"real_steps": 50}}
    elif words[0] == "collect":
        result |= {"real_transitions": {"offline": 90, "online": 0}}
    algo = "grpo" if "grpo" in words else "sft"
    (out / "config.toml").write_text(f'seed = {seed}\n[train]\nalgo = "{algo}"\n')
    about = {"command": f"dreamgym {words[0]}", "packages": "torch 2"}
    (out / "run.json").write_text(json.dumps(about))
    (out / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (out / "result.json").write_text(json.dumps(result))


def play(suite, root, player, **more):
    return asyncio.run(run_suite(suite, root, call=player, **more))


@pytest.fixture
def suite():
    return make_suite("table1", "tiny", envs=["coin8"], arms=list(SUCCESS), seeds=range(3))


def test_arms_share_what_they_have_in_common(suite):
    names = [stage.name for stage in suite.stages]
    assert len(names) == len(set(names)) == 3 * 10
    assert sum(name.endswith("/clone") for name in names) == 3
    done = set()
    for stage in suite.stages:
        assert all(need.key in done for need in stage.needs)
        done.add(stage.key)


def test_another_setting_far_up_the_chain_is_another_stage():
    first = Stage("a", ("collect", "--episodes", "5"))
    other = Stage("a", ("collect", "--episodes", "6"))
    assert Stage("b", ("fit", Inside(first))).key != Stage("b", ("fit", Inside(other))).key
    assert Stage("b", ("fit",), (first,)).key != Stage("b", ("fit",), (other,)).key


def test_everything_runs_once_and_a_second_time_not_at_all(suite, tmp_path):
    player = Player()
    assert play(suite, tmp_path, player, jobs=2) == {}
    assert len(player.played) == len(suite.stages)
    assert player.most == 2
    again, seen = Player(), []
    play(suite, tmp_path, again, on_change=seen.append)
    assert again.played == []
    assert (seen[-1].done, seen[-1].total) == (30, 30)


def test_the_time_left_goes_by_what_stages_of_the_kind_took(suite, tmp_path):
    times = tmp_path / "stages.jsonl"
    fits = [stage for stage in suite.stages if stage.name.endswith("/dream")]
    assert seconds_left(times, fits, jobs=1) is None
    rows = [("coin8-7/dream", 100.0, 0), ("map-0/dream", 140.0, 0), ("map-1/dream", 3.0, 1),
            ("map-0/clone", 10.0, 0)]  # fmt: skip
    told = ({"stage": f"{name}-ab12", "key": "ab12", "seconds": seconds, "code": code}
            for name, seconds, code in rows)  # fmt: skip
    times.write_text("".join(json.dumps(row) + "\n" for row in told))
    assert seconds_left(times, fits, jobs=2) == pytest.approx(3 * 120 / 2)
    unheard_of = [stage for stage in suite.stages if stage.name.endswith("/grpo-real")]
    assert seconds_left(times, unheard_of[:1], jobs=1) == pytest.approx((120 + 10) / 2)


def test_what_was_begun_is_resumed_or_begun_again(suite, tmp_path):
    stages = {stage.name: stage for stage in suite.stages}
    begun = [stages[name] for name in ("coin8-0/recorded", "coin8-1/judged-clone")]
    for stage in begun:
        stage.folder(tmp_path).mkdir(parents=True)
        (stage.folder(tmp_path) / "half").write_text("")
    player = Player()
    play(suite, tmp_path, player)
    resumed = [name for _, name, resume in player.played if resume]
    assert resumed == [begun[0].folder(tmp_path).name]
    assert (begun[0].folder(tmp_path) / "half").exists()
    assert not (begun[1].folder(tmp_path) / "half").exists()


def test_a_stage_that_fails_takes_only_its_own_with_it(suite, tmp_path):
    failures = play(suite, tmp_path, Player(breaks=("grpo-dream",)))
    assert len(failures) == 3
    assert all("the gate is shut" in why for why in failures.values())
    table = make_table(suite, tmp_path)
    assert [cell.success is None for cell in table.cells if cell.arm == "grpo-dream"] == [True] * 3
    assert len(table.of("grpo-real")) == 3
    told = write_markdown(table, command="c", failures=failures)
    assert "Not finished, in no figure: grpo-dream in coin8, seed 0" in told
    assert "| grpo-dream | none | 0 |" in told


def test_a_stage_that_another_suite_began_in_the_same_moment_is_waited_for(tmp_path):
    suite = make_suite("table1", "tiny", envs=["coin8"], arms=["random"], seeds=range(1))
    calls = []

    async def call(words, log):
        """The other suite was faster: it holds the folder, and is done a moment later."""
        calls.append(words)
        out = Path(words[words.index("--out") + 1])
        out.mkdir(parents=True)
        held = (out / ".lock").open("w")
        fcntl.flock(held, fcntl.LOCK_EX)
        log.write_text("error: in use by another process\n")

        def finish():
            leave(out, words)
            held.close()

        asyncio.get_running_loop().call_later(0.1, finish)
        return 2

    assert play(suite, tmp_path, call) == {}
    assert len(calls) == 1


def test_an_evaluation_in_which_every_episode_failed_is_no_result(tmp_path):
    suite = make_suite("table1", "tiny", envs=["coin8"], arms=["random"], seeds=range(1))
    known = KnownCells(tmp_path / "cells.jsonl")

    async def call(words, log):
        """What `dreamgym eval` leaves when the engine does not start."""
        out = Path(words[words.index("--out") + 1])
        out.mkdir(parents=True)
        leave(out, words)
        nothing = {"command": "eval", "success": {"mean": None, "episodes": 0}, "failed": 8,
                   "first_failure": "no Java"}  # fmt: skip
        (out / "result.json").write_text(json.dumps(nothing))
        known.keep(suite, tmp_path)
        return 1

    (why,) = play(suite, tmp_path, call).values()
    assert why == "every episode failed, the first with: no Java"
    assert known.found == {} and not suite.cells[0].finished(tmp_path), "it will be run again"


def test_attempts_that_were_cut_off_count_as_time(tmp_path):
    suite = make_suite("table1", "tiny", envs=["coin8"], arms=["random"], seeds=range(1))

    async def cut(words, log):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        play(suite, tmp_path, cut)
    (row,) = map(json.loads, (tmp_path / "stages.jsonl").read_text().splitlines())
    assert (row["key"], row["code"]) == (suite.stages[0].key, None)


def test_episodes_that_broke_are_told(suite):
    cells = tuple(CellResult(c.env, c.arm, c.seed, 0.5, failed=c.seed) for c in suite.cells)
    told = write_markdown(BenchTable(suite, cells), command="c", failures={})
    assert "- 9 of the episodes that judge 6 cells broke and count neither way." in told


def test_seeds_are_counted_by_column():
    both = make_suite("table1", "tiny", envs=["coin8", "map"], arms=["start", "random"])
    cells = tuple(
        CellResult(c.env, c.arm, c.seed, 0.5 if c.arm == "start" and c.seed < count else None)
        for c in both.cells
        for count in [5 if c.env == "coin8" else 2]
    )
    told = write_markdown(BenchTable(both, cells), command="c", failures={})
    assert "| 5, 2 | 0 | 0 | 0.0 |" in told
    assert "| random | none | none | 0 |  |  |  |" in told


def test_audits_beside_the_chain_count_with_what_they_look_at(tmp_path):
    both = make_suite("table2", envs=["coin8"], arms=["full", "no-gate"], seeds=range(1))
    play(both, tmp_path, Player())
    full, free = make_table(both, tmp_path).cells
    assert full.evaluation - free.evaluation == 50 + 90, "its audit, and what was held for it"
    assert full.seconds - free.seconds == 3 * 60, "and the evaluation of the start"


def test_a_policy_that_is_judged_in_several_columns_is_one_observation(tmp_path):
    crossing = make_suite("transfer", envs=["coin8"], seeds=range(3))
    table = make_table(crossing, tmp_path)
    assert table.compared_in == crossing.envs
    sizes = make_suite("table1", envs=["coin8"], arms=["start"], models=("1m", "3m"))
    assert make_table(sizes, tmp_path).compared_in == sizes.envs, "they learnt from one record"
    apart = make_suite("table1", envs=["coin8", "map"], arms=["start", "grpo-real"])
    assert make_table(apart, tmp_path).compared_in == ("coin8", "map", None)


def test_the_table_by_hand(suite, tmp_path):
    play(suite, tmp_path, Player())
    table = make_table(suite, tmp_path)
    assert str(table.success("grpo-dream", "coin8")) == "0.600 [0.170, 1.000]"
    paired = table.paired("grpo-dream", "start", "coin8")
    assert paired.difference.mean == pytest.approx(0.3)
    assert paired.p_flip == pytest.approx(2 / 8)
    cell = table.of("grpo-real")[0]
    assert (cell.offline, cell.online, cell.episodes) == (300, 1600, 100)
    assert cell.evaluation == 10 + 1000
    dreamt = table.of("grpo-dream")[0]
    assert (dreamt.offline, dreamt.online) == (700, 0)
    assert cell.seconds == 60 * 4, "no clock saw the stages of this player but their own"
    needed = table.needed("grpo-dream", by="grpo-real")[0]
    assert (needed.ended, needed.level, needed.online) == (dreamt, 1.0, 1600.0)
    assert needed.seconds == cell.seconds, "at its last look it has had all of its time"
    assert replace(cell, seconds=100.0).seconds_at(0) == 96.0, "of which 5 are practice"
    assert needed.times is None, "what took none cannot be multiplied"
    assert replace(needed, ended=replace(dreamt, online=100)).times == 16.0
    told = write_markdown(table, command="dreamgym bench", failures={})
    assert "| start | 0.300 [0.052, 0.548] | 3 | 300 | 0 |" in told
    assert "| arm | in | seed 0 | seed 1 | seed 2 |" in told
    assert "| start | coin8 | 0.200 | 0.300 | 0.400 |" in told
    assert "| grpo-dream | coin8 | 0 | 1.00 | 0 |" in told
    assert "`dreamgym bench`" in told
    assert json.loads(json.dumps(table.plain(), allow_nan=False))["comparisons"]
    page = suite_page(table, tmp_path)
    assert "grpo-dream minus start" in page
    curves = page.partition("Success over training")[2]
    assert "grpo-dream</" in curves, "trainings are called by their arms"
    assert "grpo in a dream" not in curves
    assert "coin8: real success by online real transitions" in page
    assert "coin8: real success by minutes" in page
    dreams = BenchTable(table.suite, tuple(table.of("grpo-dream")))
    assert "by online real transitions" not in looks_section(dreams), "of what there is none"
    away = replace(table.suite, cells=tuple(replace(one, env="coin8->map") for one in suite.cells))
    judged = tuple(replace(cell, env="coin8->map") for cell in table.cells)
    assert looks_section(BenchTable(away, judged)) == "", "looks are not of where it is judged"


def test_how_much_more_real_practice_was_given_by_hand():
    suite = make_suite("table1", envs=["coin8"], arms=["grpo-real", "grpo-s2r"], seeds=range(3))
    online = {"grpo-real": (30_000, 20_000, 40_000), "grpo-s2r": (1_000, 1_600, 0)}
    cells = tuple(
        CellResult(cell.env, cell.arm, cell.seed, 0.5, online=online[cell.arm][cell.seed])
        for cell in suite.cells
    )
    table = BenchTable(suite, cells)
    # Seed 2 never came to practise for real: nothing to compare.
    assert table.ratio("grpo", "coin8") == (50_000 / 2_600, 12.5)
    assert table.ratio("ppo", "coin8") is None
    told = write_markdown(table, command="c", failures={})
    assert "| grpo | coin8 | 19.2 | 12.5 |" in told
    means = BenchTable(suite, tuple(replace(cell, averaged=True) for cell in cells))
    assert means.ratio("grpo", "coin8") == (50_000 / 2_600, None), "of no seed is it known"
    told = write_markdown(means, command="c", failures={})
    assert "| grpo | coin8 | 19.2 | not on record |" in told


def test_success_on_the_way_by_hand():
    cells = [
        CellResult("e", "a", 0, 0.5, seconds=700.0, looks=((0, 0.2, 10.0), (900, 0.6, 100.0))),
        CellResult("e", "a", 1, 0.5, seconds=1300.0, looks=((0, 0.4, 10.0), (700, 0.8, 100.0))),
        CellResult("e", "a", 2, 0.5),
    ]
    bought = curve(cells, online)
    assert [(point.x, round(point.mean, 3)) for point in bought] == [(0.0, 0.3), (800.0, 0.7)]
    assert bought[0].low == 0.0 and bought[1].high == 1.0, "no share lies outside"
    # Ten and twenty minutes went before the first of them practised for a second.
    first, last = curve(cells, minutes)
    assert (first.x, last.x) == pytest.approx((15 + 1 / 6, 15 + 100 / 60))
    longer = replace(cells[0], looks=(*cells[0].looks, (1800, 0.9, 200.0)))
    assert len(curve([longer, cells[1]], online)) == 2, "where one seed is alone there is no mean"
    assert curve(cells[2:], online) == ()


def test_a_table_says_what_ran_its_cells_and_what_was_noted(tmp_path):
    suite = make_suite("table1", envs=["coin8"], arms=["start"], seeds=range(3))
    cells = [CellResult(one.env, one.arm, one.seed, 0.5, 200) for one in suite.cells]
    same = tuple(replace(cell, packages="torch 2") for cell in cells)
    told = write_markdown(BenchTable(suite, same), command="c", failures={})
    assert "\nRun with torch 2.\n" in told
    assert "Success on 200 held-out real tasks per seed" in told
    mixed = (replace(cells[0], note="by hand", episodes=100), *same[1:])
    told = write_markdown(BenchTable(suite, mixed), command="c", failures={})
    assert "- 2 cells run with torch 2\n- 1 cell run with packages that the record" in told
    assert "Success on 100 to 200 held-out" in told
    assert "- 1 cell (start in coin8): by hand.\n" in told


def test_one_seed_has_no_interval_and_no_test(tmp_path):
    suite = make_suite(
        "table1", "tiny", envs=["coin8"], arms=["start", "grpo-dream"], seeds=range(1)
    )
    play(suite, tmp_path, Player())
    table = make_table(suite, tmp_path)
    assert str(table.success("start", "coin8")) == "0.200"
    assert table.paired("grpo-dream", "start").p_t is None


def test_gates_stand_before_dreams_where_a_size_is_real():
    suite = make_suite("table1", "small", envs=["coin8"], arms=["grpo-dream"], seeds=range(1))
    trained = next(stage for stage in suite.stages if stage.name == "coin8-0/grpo-dream")
    assert "coin8-0/audit" in {stage.name for stage in trained.needs}
    tiny = make_suite("table1", "tiny", envs=["coin8"], arms=["grpo-dream"], seeds=range(1))
    assert not [stage for stage in tiny.stages if stage.name == "coin8-0/audit"]


def test_wrong_wishes_are_told():
    for words, said in (
        ({"name": "tabel1"}, "Did you mean 'table1'"),
        ({"name": "table1", "scale": "huge"}, "unknown scale 'huge'"),
        ({"name": "table1", "arms": ["grpo"]}, "unknown arm of table1 'grpo'"),
        ({"name": "table1", "envs": ["coins"]}, "Did you mean 'coin'"),
    ):
        with pytest.raises(ConfigError, match=said):
            make_suite(**words)


def test_a_cell_is_its_last_stage_and_all_before():
    first = Stage("a", ("collect",))
    last = Stage("b", ("eval", Inside(first, "x")))
    suite = Suite("s", "about", (Cell("e", "arm", 0, last),))
    assert suite.stages == (first, last)
    folder = first.folder(Path("/r"))
    assert last.command(Path("/r"))[:2] == ["eval", str(folder / "x")]


def test_cells_on_record_are_not_run_again_on_another_machine(suite, tmp_path):
    file, here, there = tmp_path / "cells.jsonl", tmp_path / "here", tmp_path / "there"
    only_first = make_suite("table1", "tiny", envs=["coin8"], arms=list(SUCCESS), seeds=range(1))
    known = KnownCells(file)
    assert known.missing(only_first) == only_first
    play(only_first, here, Player())
    known.keep(only_first, here)
    known.keep(only_first, here)
    assert len(file.read_text().splitlines()) == 3
    again, player = KnownCells(file), Player()
    play(again.missing(suite), there, player)
    assert len(player.played) == 20
    assert not (there / "coin8-0").exists()
    whole = tmp_path / "whole"
    play(suite, whole, Player())
    told, straight = make_table(suite, there, again.found), make_table(suite, whole)
    assert [cell.success for cell in told.cells] == [cell.success for cell in straight.cells]
    assert [cell.looks for cell in told.cells] == [cell.looks for cell in straight.cells]
    assert {cell.packages for cell in told.cells} == {"torch 2"}
    line = json.loads(file.read_text().splitlines()[0])
    file.write_text(json.dumps(line | {"note": "looked at"}) + "\n")
    assert next(iter(KnownCells(file).found.values())).note == "looked at"


def test_a_known_cell_bears_the_name_of_the_column_it_is_asked_for(tmp_path):
    file = tmp_path / "cells.jsonl"
    plain = make_suite("table1", "tiny", envs=["coin8"], arms=["start"], seeds=[0])
    play(plain, tmp_path, Player())
    KnownCells(file).keep(plain, tmp_path)
    sizes = make_suite(
        "table1", "tiny", envs=["coin8"], arms=["start"], seeds=[0], models=["1m", "3m"]
    )
    told = make_table(sizes, tmp_path / "elsewhere", KnownCells(file).found)
    assert [(cell.env, cell.success is None) for cell in told.cells] == [
        ("coin8 1m", False), ("coin8 3m", True),
    ]  # fmt: skip


def test_one_known_cell_may_stand_in_two_places(tmp_path):
    both = make_suite(
        "transfer", "tiny", envs=["coin8->coin8"], arms=["start", "start-there"], seeds=[0]
    )
    first, second = both.cells
    assert first.key == second.key
    play(both, tmp_path, Player())
    known = KnownCells(tmp_path / "cells.jsonl")
    known.keep(both, tmp_path)
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 1
    told = make_table(both, tmp_path / "elsewhere", known.found)
    assert [(cell.arm, cell.success) for cell in told.cells] == [
        ("start", 0.2), ("start-there", 0.2),
    ]  # fmt: skip


def test_without_a_file_nothing_is_kept_and_a_bad_line_is_told(suite, tmp_path):
    play(suite, tmp_path, Player())
    nowhere = KnownCells()
    nowhere.keep(suite, tmp_path)
    assert nowhere.found == {}
    bad = tmp_path / "bad.jsonl"
    for line in ('{"key": "1", "cell": {"env": "coin8"}}', '{"key": "1"}', "[]", "no JSON"):
        bad.write_text(line + "\n")
        with pytest.raises(RecordError, match="not a cell of a suite"):
            KnownCells(bad)


def test_what_is_known_so_far_is_there_to_be_read(tmp_path, monkeypatch):
    suite = make_suite("table1", "tiny", envs=["coin8"], arms=["random"], seeds=range(2))
    run = open_run(tmp_path / "run", config="", about={}, resume=False)
    found = []

    async def play_stage(stage, root, **more):
        table = run.path / "table.md"
        found.append(table.read_text() if table.exists() else "")
        stage.folder(root).mkdir(parents=True)
        leave(stage.folder(root), stage.command(root))
        return ""

    monkeypatch.setattr("dreamgym.bench.run.run_stage", play_stage)
    asyncio.run(run_bench(suite, run, scale="tiny", command="dreamgym bench"))
    run.close()
    assert found[0] == ""
    assert "Not finished, in no figure: random in coin8, seed 1." in found[1]
    assert "| random | 0.100 | 1 |" in found[1]
