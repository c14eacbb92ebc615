"""What is learnt from, what is held out, and who learns."""

import pytest

from dreamgym.errors import ConfigError
from dreamgym.experience.prompt import Style, Switches
from dreamgym.models.sft_plan import SftPlan
from dreamgym.train.experience_fit import learn, make_pupil, split_off, spread
from dreamgym.train.lessons import SPANS, make_lessons
from played_corridors import played


def test_a_task_is_learnt_or_held_out_never_both():
    recorded = [played(n, name=name) for n in range(40) for name in ("a", "b")]
    learnt, held = split_off(recorded, share=0.3, seed=1)
    tasks = {one.task.id for one in learnt}, {one.task.id for one in held}
    assert not tasks[0] & tasks[1]
    assert len(learnt) + len(held) == len(recorded)
    assert 0.1 < len(held) / len(recorded) < 0.5
    assert (learnt, held) == split_off(recorded, share=0.3, seed=1)
    assert held != split_off(recorded, share=0.3, seed=2)[1]


def test_a_cap_takes_whole_trajectories_and_leaves_the_held_out_tasks_alone():
    recorded = [played(n) for n in range(40)]
    _, held = split_off(recorded, share=0.3, seed=1)
    few, same = split_off(recorded, share=0.3, seed=1, most=23)
    assert sum(len(one.steps) for one in few) == 20
    assert same == held


def test_no_share_holds_nothing_out():
    recorded = [played(n) for n in range(5)]
    assert split_off(recorded, share=0.0, seed=0) == (recorded, [])


def test_a_name_that_is_neither_preset_nor_folder_is_an_error(tmp_path):
    for name in ("2m", str(tmp_path)):
        with pytest.raises(ConfigError, match="neither one of 1m, 3m, 10m nor a model folder"):
            make_pupil(name, [], switches=Switches(), vocabulary=100, seed=0)


def test_learning_lowers_the_loss_and_tells_the_parts_apart():
    lessons = list(make_lessons([played(n) for n in range(4)], memory=None, references=0))
    switches = Switches(references=False)
    learner = make_pupil("1m", lessons, switches=switches, vocabulary=400, seed=0)
    assert learner.style is Style.COMPACT
    plan = SftPlan(spans=SPANS, steps=8, tokens_per_step=300, eval_every=4, learning_rate=3e-3)
    seen = []
    result = learn(
        learner, lessons[5:], held_out=lessons[:5], switches=switches, plan=plan,
        on_progress=seen.append,
    )  # fmt: skip
    assert [point.step for point in result.curve] == [4, 8]
    assert set(result.curve[-1].spans) == set(SPANS)
    assert seen[-1].loss < seen[0].loss
    assert result.padding < 0.1


def test_lessons_for_the_curve_are_taken_evenly():
    assert spread([1, 2, 3], 5) == [1, 2, 3]
    assert spread(list(range(10)), 5) == [0, 2, 4, 6, 8]
