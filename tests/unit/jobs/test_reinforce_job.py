"""Learning by trial as a job: a dream in the place of reality, and what is refused beforehand."""

import asyncio
import json
from dataclasses import asdict, replace

import pytest
from stairs_engine import HEIGHT, dreaming, look

from dreamgym.agents import Behaviour
from dreamgym.agents.policy import Manner, PolicyAgent
from dreamgym.agents.policy_prompt import MARKS
from dreamgym.agents.policy_tokens import CompactWriter
from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style
from dreamgym.experience.world import DreamWorld
from dreamgym.jobs.gate import check_world_gate
from dreamgym.jobs.reinforce import loop_plan
from dreamgym.jobs.trainee import CHECKPOINTS, go_on, load_start, make_algorithm
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.checkpoint import Checkpoint, save_checkpoint
from dreamgym.models.llama import Llama
from dreamgym.models.llama_files import LlamaShape
from dreamgym.models.start import set_start_weights
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import GroupPlan
from dreamgym.train.algorithms import Grpo, Ppo
from dreamgym.train.critic import make_critic
from dreamgym.train.loop import LoopPlan, Practice, Trainee, UniformTasks, run_loop
from dreamgym.train.update import Learner, UpdatePlan
from dreamgym.types import Observation, Opening, Source, Split, Task

TASKS = tuple(Task(f"stairs#{n}", "stairs", str(n), Split.TRAIN) for n in range(4))
ACTIONS = ("dance", "down", "sing", "up")


async def opening(task):
    return Opening(replace(task, goal="climb to the top"), Observation(look(0)))


@pytest.mark.slow
def test_a_policy_learns_in_a_dream_without_a_real_step():
    texts = [*map(look, range(HEIGHT + 1)), "climb to the top", *ACTIONS]
    words = train_word_tokenizer(texts, special=MARKS[:-1], vocab_size=300, min_count=1)
    model = Llama(
        LlamaShape(words.vocab_size, hidden=32, layers=1, heads=2, inner=64, positions=256)
    )
    set_start_weights(model, seed=0, copying=False)
    llm, writer = LocalLLM(model, words, tick_seconds=0.0), CompactWriter(words, 256, 4)
    manner = Manner(options=lambda now: ACTIONS)
    behaviour = Behaviour("p", lambda env, seed: PolicyAgent(llm, writer, seed, manner=manner))
    learner = Learner(model, UpdatePlan(epochs=2, minibatches=2))
    world = DreamWorld(
        ExperienceModel(dreaming(), style=Style.FULL), openings=opening, ledger=False
    )
    rows = []
    progress = asyncio.run(
        run_loop(
            Trainee(behaviour, writer, learner, Grpo()),
            Practice(world, Answerer(Source.DREAM, "scripted", ""), UniformTasks(TASKS)),
            LoopPlan(10, groups=4, play=GroupPlan(8, max_steps=4), learning_rate=1e-2),
            on_row=lambda progress, figures: rows.append(figures),
        )
    )
    success = [row["reward/success"] for row in rows]
    assert success[0] < 0.6
    assert success[-1] > 0.9
    assert (progress.real_steps, rows[-1]["real/steps_online"]) == (0, 0.0)
    assert progress.dream_steps > 0
    assert rows[0]["dream/model"] > 0.5
    assert rows[0]["episodes/refused"] > rows[-1]["episodes/refused"]


def settings(*more):
    return load_config(settings=["train.algo='grpo'", *more])


def audited(folder, **changes):
    """Leave the result of an audit of `folder/dream`, all of whose figures are perfect."""
    good, none = {"mean": 1.0, "count": 9}, {"mean": 0.0, "count": 9}
    loop = {"agreement": good, "unknown": 0, "failed": 0, "episodes": 9}
    result = {
        "world": str(folder / "dream"),
        "one_step": {"false_success": none, "invalid_refused": good},
        "closed_loop": loop,
        "on_policy": [{**loop, "precision": good, "gap": none}],
        **changes,
    }
    (folder / "result.json").write_text(json.dumps(result))
    return f"rl.gate='{folder}'", f"rl.world='{folder / 'dream'}'"


def test_only_an_open_gate_lets_one_in(tmp_path):
    check_world_gate(settings())  # reality needs nobody to vouch for it
    check_world_gate(settings(*audited(tmp_path)))
    check_world_gate(settings("rl.world='dream'", "rl.gate='off'"))
    with pytest.raises(ConfigError, match="may one train in dream"):
        check_world_gate(settings("rl.world='dream'"))
    with pytest.raises(ConfigError, match="no audit at"):
        check_world_gate(settings("rl.world='dream'", f"rl.gate='{tmp_path / 'no'}'"))
    with pytest.raises(ConfigError, match="is an audit of"):
        check_world_gate(settings(audited(tmp_path)[0], "rl.world='other'"))
    shut = {"false_success": {"mean": 0.3}, "invalid_refused": {"mean": 1.0}}
    with pytest.raises(ConfigError, match=r"shut: one-step false success is 0\.300"):
        check_world_gate(settings(*audited(tmp_path, one_step=shut)))


def test_an_audit_vouches_for_the_model_that_was_served(tmp_path):
    gate, _ = audited(tmp_path, world="llm", served="mine")
    check_world_gate(settings(gate, "rl.world='llm'", "llm.model='mine'"))
    with pytest.raises(ConfigError, match="is an audit of mine, not of other"):
        check_world_gate(settings(gate, "rl.world='llm'", "llm.model='other'"))


def test_an_audit_vouches_for_how_the_dream_was_played(tmp_path):
    dream = settings().dream
    gate = audited(tmp_path, dream=asdict(dream))
    check_world_gate(settings(*gate))
    with pytest.raises(
        ConfigError, match=r"a dream with grounding=True, not of .* grounding=False"
    ):
        check_world_gate(settings(*gate, "dream.grounding=false"))
    check_world_gate(settings(*gate, "dream.known_words=true", "dream.window=9"))
    served = audited(tmp_path, world="llm", served="mine", dream=asdict(dream))[0]
    with pytest.raises(ConfigError, match=r"with window=4"):
        check_world_gate(settings(served, "rl.world='llm'", "llm.model='mine'", "dream.window=9"))


def test_settings_reach_the_parts(tmp_path):
    config = settings("rl.groups=3", "rl.group_size=4", "rl.eval_every=0", "rl.steps=7", "seed=3")
    plan = loop_plan(config)
    assert (plan.steps, plan.groups, plan.play.members, plan.play.seed) == (7, 3, 4, 3)
    penal = settings("rl.invalid_penalty=0.5", "train.algo='ppo'", "rl.group_size=1")
    assert make_algorithm(penal) == Ppo(invalid_penalty=0.5)
    with pytest.raises(ConfigError, match="at least 2"):
        make_algorithm(settings("rl.group_size=1"))
    with pytest.raises(ConfigError, match="starts from a policy"):
        load_start(settings("policy.model='1m'"))


def learner_after(updates, *, critic=True, seed=0):
    """A learner after some updates along the same slope, and its model."""
    import torch

    model = Llama(LlamaShape(20, hidden=32, layers=1, heads=2, inner=64, positions=32))
    set_start_weights(model, seed=seed, copying=False)
    learner = Learner(model, UpdatePlan(), critic=make_critic(model, seed=1) if critic else None)
    for _ in range(updates):
        for weight in learner._trained.values():
            weight.grad = torch.ones_like(weight)
        learner._optimizer.step()
    return learner, model


def test_a_run_goes_on_with_the_optimiser_and_the_critic_of_another(tmp_path):
    import torch

    before, model = learner_after(3)
    save_checkpoint(tmp_path / CHECKPOINTS, Checkpoint(3, before.tensors(), {}))
    after, other = learner_after(0)
    other.load_state_dict(model.state_dict())
    go_on(after, tmp_path)
    left, right = before.tensors(), after.tensors()
    assert left.keys() == right.keys()
    assert any(name.startswith("adam/") for name in left) and "model/head.out.weight" in left
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_what_cannot_go_on_is_refused(tmp_path):
    before, model = learner_after(2)
    learner, other = learner_after(0)
    with pytest.raises(ConfigError, match="no checkpoint of it"):
        go_on(learner, tmp_path)
    save_checkpoint(tmp_path / CHECKPOINTS, Checkpoint(2, before.tensors(), {}))
    with pytest.raises(ConfigError, match="not the one of its last checkpoint"):
        go_on(learner, tmp_path)
    without, other = learner_after(0, critic=False)
    other.load_state_dict(model.state_dict())
    with pytest.raises(ConfigError, match="another algorithm"):
        go_on(without, tmp_path)
