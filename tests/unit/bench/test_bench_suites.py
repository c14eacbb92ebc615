"""The suites as values: what arms share, what sets them apart, and what is refused."""

from itertools import pairwise
from pathlib import Path

import pytest

from dreamgym.bench import SUITES, make_suite
from dreamgym.bench.place import GROUP_SIZE, PLACES, SCALES, find_place
from dreamgym.bench.suites import AMOUNTS, CROSSINGS, MODELS, learnt_in
from dreamgym.config import load_config
from dreamgym.errors import ConfigError

ROOT = Path("/suite")
REAL_SCALES = [scale for scale in SCALES.values() if scale.gate]


def one_cell(name, arm, **more):
    suite = make_suite(name, more.pop("scale", "small"), arms=[arm], seeds=range(1), **more)
    (cell,) = suite.cells
    return {stage.name.partition("/")[2]: stage.command(ROOT) for stage in cell.stages}


def set_in(words):
    return [value for word, value in pairwise(words) if word == "--set"]


def after(words, flag):
    return words[words.index(flag) + 1]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SUITES)
def test_no_two_stages_have_one_folder_and_none_comes_before_what_it_needs(name, scale):
    stages = make_suite(name, scale, seeds=range(2), models=("1m", "3m")).stages
    assert len({stage.folder(ROOT) for stage in stages}) == len(stages)
    done = set()
    for stage in stages:
        assert all(need.key in done for need in stage.needs)
        done.add(stage.key)


@pytest.mark.parametrize("name", SUITES)
def test_all_settings_are_ones_that_there_are(name):
    for scale in SCALES:
        for stage in make_suite(name, scale, seeds=range(1)).stages:
            words = [word.name if not isinstance(word, str) else word for word in stage.words]
            load_config(settings=["rl.world='d'", *set_in(words)])


@pytest.mark.parametrize("name", SUITES)
def test_comparisons_are_of_arms_that_there_are(name):
    plan = SUITES[name]
    assert {arm for pair in plan.compare for arm in pair} <= plan.arms.keys()
    assert len(set(plan.compare)) == len(plan.compare)
    assert make_suite(name, arms=[next(iter(plan.arms))], seeds=range(1)).compare == ()


def test_the_first_table_has_its_rows_and_columns():
    suite = make_suite("table1")
    assert suite.envs == ("coin8-marks", "map-marks", "twc", "alfworld")
    assert suite.arms == (
        "random", "start", "sft", "sft-more", "dpo", "grpo-real", "grpo-dream", "grpo-s2r",
        "ppo-real", "ppo-dream", "ppo-s2r",
    )  # fmt: skip
    assert {cell.seed for cell in suite.cells} == set(range(5))


def test_the_start_itself_plays_before_the_dream_is_fitted():
    stages = one_cell("table1", "grpo-dream", envs=["twc"])
    assert after(stages["own"], "--begin-with").endswith("experience.sqlite")
    assert "/walks-" in after(stages["own"], "--begin-with")
    assert "/clone-" in after(stages["own"], "--policy")
    assert "/own-" in after(stages["dream"], "--store")
    assert set_in(stages["dream"]) == [
        "fit.threads=1", "fit.ending_share=0.3", "dream.placeholders=true", "dream.hints=true",
        "fit.forget_share=0.3", "fit.thin_share=0.5",
    ]  # fmt: skip
    for name in ("audit", "grpo-dream"):
        assert "dream.known_wins=true" in set_in(stages[name])
    assert "/audit-" in after(stages["grpo-dream"], "--gate")


def test_exploring_episodes_join_the_record_where_a_size_wants_them():
    stages = one_cell("table1", "grpo-dream", envs=["coin8"], scale="medium")
    assert after(stages["explored"], "--policy") == "explore"
    assert after(stages["explored"], "--episodes") == str(2 * PLACES["coin8"].tasks)
    assert "/explored-" in after(stages["own"], "--begin-with")
    for arm in ("start", "sft", "grpo-real"):
        small, medium = (
            make_suite("table1", scale, envs=["coin8"], arms=[arm], seeds=[0]).cells[0].key
            for scale in ("small", "medium")
        )
        assert small == medium, "what has no dream is the same at both sizes"


def test_stores_are_never_changed_by_a_later_stage():
    for name in SUITES:
        for stage in make_suite(name, "tiny", seeds=range(1), models=("1m", "3m")).stages:
            assert stage.words[0] != "collect" or "--store" not in stage.words


@pytest.mark.parametrize("scale", REAL_SCALES, ids=lambda scale: scale.name)
@pytest.mark.parametrize("place", [*PLACES.values(), find_place("alfworld/official?path=/data")],
                         ids=lambda place: place.name)  # fmt: skip
def test_real_practice_has_sixteen_times_the_transitions_by_construction(place, scale):
    least = scale.real_steps * scale.groups(place) * GROUP_SIZE * place.shortest
    assert least >= 16 * scale.budget(place)
    assert scale.budget(place) >= GROUP_SIZE * place.turns, "it pays for a group"
    assert f"rl.groups={scale.groups(place)}" in scale.practice(place)


def test_policies_of_two_sizes_share_the_record_and_no_more():
    suite = make_suite(
        "table1", envs=["coin8"], arms=["grpo-dream"], seeds=range(1), models=("1m", "3m")
    )
    assert suite.envs == ("coin8 1m", "coin8 3m")
    one, other = ({stage.key for stage in cell.stages} for cell in suite.cells)
    shared = {stage.name for stage in suite.stages if stage.key in one & other}
    assert shared == {"coin8-0/recorded", "coin8-0/walks", "coin8-0/held"}


def test_ablations_share_the_start_and_differ_in_one_thing():
    full = one_cell("table2", "full", envs=["coin8"])
    assert "--curriculum" in full["grpo-full"]
    assert after(full["grpo-full"], "--gate") == "off"
    assert "audit" in full
    changed = {
        "no-references": "dream.references=0", "no-reasoning": "dream.reasoning=false",
        "no-history": "dream.history=false",
    }  # fmt: skip
    for arm, setting in changed.items():
        stages = one_cell("table2", arm, envs=["coin8"])
        assert set(set_in(stages["dream"])) - set(set_in(full["dream"])) == {setting}
        assert stages["own"] == full["own"]
    luck = one_cell("table2", "no-luck-control", envs=["coin8"])["grpo-not-shared"]
    sampled = one_cell("table2", "sampled", envs=["coin8"])["grpo-sampled"]
    assert set(set_in(luck)) - set(set_in(sampled)) == {"dream.share_answers=false"}
    assert "dream.temperature=1" in set_in(sampled)
    plain = one_cell("table2", "no-curriculum", envs=["coin8"])
    assert "--curriculum" not in plain["grpo-full"]
    known = one_cell("table2", "no-task-generation", envs=["coin8"])["grpo-full"]
    assert "--curriculum" in known
    assert "curriculum.maker=none" in set_in(known)


def test_without_its_gate_the_same_policy_is_counted():
    suite = make_suite("table2", envs=["coin8"], arms=["full", "no-gate"], seeds=range(1))
    full, free = suite.cells
    assert full.last == free.last
    assert full.gated
    assert free.audit is None


def test_policies_are_judged_elsewhere():
    suite = make_suite("transfer", seeds=range(1))
    assert suite.envs == tuple(
        f"{here}->{there}" for here in ("coin8-marks", "map-marks") for there in CROSSINGS[here]
    )
    cells = {(cell.env, cell.arm): cell for cell in suite.cells}
    there = cells["coin8-marks->map", "grpo-dream"]
    assert after(there.last.command(ROOT), "--env") == PLACES["map"].spec
    trained = next(one for one in there.stages if one.name == "coin8-marks-0/grpo-dream")
    elsewhere = cells["coin8-marks->coin-marks", "grpo-dream"]
    assert trained in elsewhere.stages, "learnt once, judged everywhere"
    own = cells["coin8-marks->map", "start-there"]
    (home,) = make_suite("transfer", envs=["map->map"], arms=["start"], seeds=range(1)).cells
    assert own.last == home.last
    (named,) = make_suite("transfer", envs=["coin->twx/coin"], arms=["start"], seeds=range(1)).cells
    assert named.env == "coin->twx-coin"


def test_a_column_is_there_once_however_often_it_is_named():
    twice = make_suite("transfer", envs=["coin8-marks", "coin8-marks->map"], seeds=range(1))
    assert twice.cells == make_suite("transfer", envs=["coin8-marks"], seeds=range(1)).cells


def test_where_policies_of_a_column_learnt():
    assert learnt_in("coin8 3m") == ("coin8 3m", True)
    assert learnt_in("map->map 3m") == ("map 3m", True)
    assert learnt_in("map->coin8") == ("map", False)


def test_sim_to_real_that_could_buy_nothing_is_refused_before_anything_is_run():
    for scale in ("small", "medium", "long"):
        assert make_suite("table1", scale, envs=["py/mine:make"], seeds=range(1)).cells
    with pytest.raises(ConfigError, match=r"80 real transitions.*larger --scale.*--arm"):
        make_suite("table1", "brief", envs=["twx/coin?numLocations=11"], seeds=range(1))
    arms = ["start", "grpo-dream"]
    assert make_suite("table1", "brief", envs=["twx/coin?numLocations=11"], arms=arms).cells


def test_amounts_of_data_are_all_that_a_dream_knows():
    suite = make_suite("data", envs=["coin8"], seeds=range(1))
    assert suite.arms[1:] == tuple(f"{m}-{n}" for m in ("1m", "3m") for n in AMOUNTS)
    stages = one_cell("data", "3m-1000", envs=["coin8"])
    assert "walks" not in stages
    assert after(stages["dream"], "--model") == "3m"
    assert after(stages["own"], "--episodes") == str(round(500 / 15.5))
    assert after(stages["clone"], "--model") == "1m", "the policy stays what it is"
    small = next(c for c in suite.cells if c.arm == "1m-1000")
    large = next(c for c in suite.cells if c.arm == "3m-1000")
    assert {s.name for s in small.stages if s in large.stages} == {
        "coin8-0/recorded", "coin8-0/clone", "coin8-0/own"
    }  # fmt: skip


def test_every_dream_is_audited_and_trained_in_whatever_comes_out():
    suite = make_suite("fidelity-vs-transfer", envs=["coin8"], seeds=range(1))
    assert len(suite.cells) >= 12
    assert len({cell.start for cell in suite.cells}) == 1
    assert len({cell.audit for cell in suite.cells}) == len(suite.cells)
    for cell in suite.cells:
        (trained,) = [one for one in cell.last.needs if "train" in one.words]
        assert after(trained.command(ROOT), "--gate") == "off"
        world = after(trained.command(ROOT), "--world")
        assert after(cell.audit.command(ROOT), "--world") == world


def test_specs_are_played_with_the_settings_of_their_kind():
    official = find_place("alfworld/official?path=/data/json_2.1.1")
    assert official.fit == PLACES["alfworld"].fit
    assert official.spec == "alfworld/official?path=/data/json_2.1.1"
    assert find_place("alfworld/official").name == "alfworld-official"
    large, small = find_place("twx/coin?numLocations=11"), find_place("twx/coin?numLocations=3")
    assert large.name != small.name
    assert large.demos == PLACES["coin8"].demos
    assert find_place("py/mine:make").turns == 24


def test_gates_can_be_left_open():
    stages = one_cell("table1", "grpo-s2r", envs=["map"], gate=False)
    assert after(stages["grpo-s2r"], "--gate") == "off"


def test_sim_to_real_goes_on_from_what_the_dream_left_on_a_sixteenth():
    suite = make_suite("table1", envs=["map"], arms=["ppo-dream", "ppo-s2r"], seeds=range(1))
    dream, s2r = suite.cells
    stages = {stage.name.partition("/")[2]: stage for stage in s2r.stages}
    assert stages["ppo-dream"] in dream.stages
    words = stages["ppo-s2r"].command(ROOT)
    assert after(words, "--from") == str(stages["ppo-dream"].folder(ROOT))
    chosen = dict(one.split("=", 1) for one in set_in(words))
    assert chosen["rl.switch_step"] == after(words, "--steps") == "1"
    episodes = SCALES["small"].real_steps * PLACES["map"].groups * GROUP_SIZE
    assert int(after(words, "--then-real")) * 16 <= episodes * PLACES["map"].shortest
    assert "rl.continued" not in chosen


def test_all_practice_cools_down_where_a_size_wants_it():
    stages = one_cell("table1", "ppo-s2r", envs=["map"], scale="long")
    assert "rl.cooldown_steps=20" in set_in(stages["ppo-dream"])
    onwards = dict(one.split("=", 1) for one in set_in(stages["ppo-s2r"]))
    assert onwards["rl.continued"] == "true" and "rl.cooldown_steps" not in onwards
    real = one_cell("table1", "ppo-real", envs=["map"], scale="long")["ppo-real"]
    assert "rl.cooldown_steps=8" in set_in(real)


def test_bad_names_are_refused():
    for words, said in (
        ({"name": "fidelity"}, "unknown suite 'fidelity'"),
        ({"name": "data", "arms": ["1m-500"]}, "unknown arm of data '1m-500'"),
        (
            {"name": "table1", "models": ["3mm"]},
            "nor a folder of one. Did you mean",
        ),
        ({"name": "table2", "arms": ["no-referenes"]}, "Did you mean 'no-references'"),
        ({"name": "transfer", "envs": ["twc"]}, "Name both"),
        ({"name": "transfer", "envs": ["coin8->mapp"]}, "Did you mean 'map'"),
        ({"name": "data", "envs": ["coin88"]}, "Did you mean 'coin8'"),
    ):
        with pytest.raises(ConfigError, match=said):
            make_suite(**words)


def test_a_policy_may_be_any_model_that_train_knows_or_a_folder(tmp_path):
    from dreamgym.models.smollm2 import SMOLLM2
    from dreamgym.models.tiny import PRESETS

    assert {*PRESETS, SMOLLM2} == set(MODELS)
    with pytest.raises(ConfigError, match="nor a folder of one"):
        make_suite("table1", models=[str(tmp_path)])
    (tmp_path / "config.json").write_text("{}")
    suite = make_suite("table1", arms=["start"], seeds=[0], models=[str(tmp_path)])
    assert all(str(tmp_path) in cell.env for cell in suite.cells)
