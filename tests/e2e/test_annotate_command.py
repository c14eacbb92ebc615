"""`dreamgym annotate` from the shell: by rule, by a teacher that fails, killed and resumed."""

import json
import random
import re
import signal
import time

import pytest

from dreamgym.experience.annotate import explain, is_annotated
from dreamgym.llm import ChaosServer, Fault
from dreamgym.replay import open_store
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
    digest,
)

KEY = "sk-do-not-show-me-4d1f9c"
EPISODES = 40
TAKES_AGAIN = 75


def teacher(prompt):
    """Explain every step of the episode that a prompt shows; says which episode it was."""
    shown = prompt.split("First state:")[1].split("There are ")
    name = digest(shown[0])
    plans = [
        {"step_id": n, "transition_plan": f"{name} {n}"}
        for n in range(1, int(shown[1].split()[0]) + 1)
    ]
    tutorial = {"Overall Plan": f"p {name}", "Success Mode": "s", "Failure Mode": "f"}
    return json.dumps({"task_tutorial": tutorial, "state_transitions": plans})


def climb(number):
    """A recorded episode on a staircase: some steps up, some refused, the top at the end."""
    rng, at, steps = random.Random(number), 0, []
    while at < 3:
        action = rng.choice(["up", "up", "fly"])
        at += action == "up"
        seen = Observation(f"staircase {number}\nstair {at}")
        result = StepResult(
            seen, float(at == 3), at == 3, success=at == 3, refused=action == "fly"
        )  # fmt: skip
        steps.append(Step(Action(action), result))
    task = Task(f"stairs#{number}", "stairs", str(number), Split.TRAIN, goal="climb to the top")
    return Trajectory(
        id=f"climb-{number:03d}", task=task, opening=Observation(f"staircase {number}\nstair 0"),
        steps=tuple(steps), stop=StopReason.TERMINATED,
        provenance=Provenance(Source.REAL, "climber"),
    )  # fmt: skip


@pytest.fixture
def recorded(shell):
    """Forty recorded episodes in the store of the folder `recorded`."""
    (shell.folder / "recorded").mkdir()
    with open_store(shell.folder / "recorded/experience.sqlite") as store:
        report = store.add([climb(number) for number in range(EPISODES)])
    assert report.trajectories == EPISODES
    return shell.folder / "recorded"


def stored(folder):
    with open_store(folder / "experience.sqlite") as store:
        return list(store.trajectories())


def result(shell, name):
    return json.loads((shell.folder / name / "result.json").read_text())


def events(shell, name):
    return [
        json.loads(line) for line in (shell.folder / name / "events.jsonl").read_text().splitlines()
    ]


def taught_words(server, *more):
    asked = [f"llm.url={server.base_url}", "llm.model=teacher", "llm.concurrency=4", *more]
    return ["annotate", "--store", "recorded", "--by", "teacher"] + [
        word for setting in asked for word in ("--set", setting)
    ]


def check_taught(trajectories):
    """No explanation is anybody else's: all of an episode's steps name it, in order."""
    for trajectory in trajectories:
        names = {step.reasoning.split()[0] for step in trajectory.steps}
        numbers = [int(step.reasoning.split()[1]) for step in trajectory.steps]
        assert len(names) == 1
        assert numbers == list(range(1, len(trajectory.steps) + 1))
    first = {trajectory.steps[0].reasoning for trajectory in trajectories}
    assert len(first) > len(trajectories) / 2


def test_rules_explain_everything_and_a_second_run_finds_nothing_to_do(shell, recorded):
    done = shell("annotate", "--store", "recorded", "--out", "rule")
    assert f"{EPISODES} of {EPISODES}" in done.stdout
    assert "not asked" in done.stdout
    trajectories = stored(recorded)
    for trajectory in trajectories:
        for transition in trajectory.transitions():
            assert transition.reasoning == explain(transition)
    told = result(shell, "rule")
    assert told["trajectories"] == EPISODES
    assert told["steps"] == sum(len(one.steps) for one in trajectories)
    assert told["failed"] == {}
    assert re.fullmatch(r"rule [0-9a-f]{16}", told["annotator"])
    again = shell("annotate", "--store", "recorded", "--out", "rule", check=False)
    assert again.returncode == 1
    assert "--resume" in again.stderr
    shell("annotate", "--store", "recorded", "--out", "second")
    assert result(shell, "second")["trajectories"] == 0
    assert result(shell, "second")["had_reasoning"] == EPISODES


def test_a_part_first_and_explanations_that_are_there_stay(shell, recorded):
    shell("annotate", "--store", "recorded", "--limit", "7", "--split", "train", "--out", "few")
    trajectories = stored(recorded)
    assert [is_annotated(one) for one in trajectories] == [True] * 7 + [False] * (EPISODES - 7)
    with open_store(recorded / "experience.sqlite") as store:
        half = trajectories[10]
        kept = ("my own words", *(None for _ in half.steps[1:]))
        store.update(half.with_reasoning(kept))
    shell("annotate", "--store", "recorded", "--out", "rest")
    after = stored(recorded)
    assert all(map(is_annotated, after))
    assert after[10].steps[0].reasoning == "my own words"
    assert result(shell, "rest")["trajectories"] == EPISODES - 7
    with ChaosServer(teacher) as server:
        shell(*taught_words(server), "--again", "--limit", "5", "--out", "again")
    renewed = stored(recorded)
    check_taught(renewed[:5])
    assert renewed[5:] == after[5:]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--store", "nowhere"), "no experience store at"),
        (("--store", "recorded", "--env", "stair"), "Did you mean 'stairs'"),
        (("--store", "recorded", "--by", "tacher"), "Did you mean 'teacher'"),
        (("--store", "recorded", "--by", "teacher"), "llm.url is not set"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left_behind(inside, recorded, words, message):
    done = inside("annotate", *words, "--out", "wrong", check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (inside.folder / "wrong").exists()


@pytest.mark.slow
def test_a_teacher_that_often_fails_leaves_whole_lessons_or_none(shell, recorded):
    kinds = (Fault.SERVER_ERROR, Fault.CUT_JSON, Fault.EMPTY_TEXT, Fault.NONSENSE)
    with ChaosServer(teacher, rate=0.45, kinds=kinds, seed=2) as server:
        words = taught_words(server, "llm.retries=3", "annotate.retries=1", "llm.prompt_price=1")
        done = shell(*words, "--out", "taught")
        told = result(shell, "taught")
        trajectories = stored(recorded)
        whole = [one for one in trajectories if is_annotated(one)]
        none = [one for one in trajectories if not any(step.reasoning for step in one.steps)]
        assert len(whole) + len(none) == EPISODES
        assert 0 < len(none) < EPISODES
        check_taught(whole)
        assert told["trajectories"] == len(whole)
        assert {failure["id"] for failure in told["failures"]} == {one.id for one in none}
        assert all(failure["message"] for failure in told["failures"])
        assert sum(told["failed"].values()) == len(none)
        assert "ReplyFormatError" in told["failed"]
        assert told["llm"]["llm/cost"] > 0
        assert f"{told['llm']['llm/calls']:.0f} calls" in done.stdout
        assert told["annotator"].startswith("teacher ")
        for _ in range(10):
            if not result(shell, "taught")["failures"]:
                break
            shell(*words, "--out", "taught", "--resume")
    assert all(map(is_annotated, stored(recorded)))
    assert result(shell, "taught")["failed"] == {}
    assert result(shell, "taught")["trajectories"] == EPISODES
    lines = (shell.folder / "taught/annotated.jsonl").read_text().splitlines()
    assert {json.loads(line)["plan"].split()[0] for line in lines} == {"p"}


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_or_asked_twice(shell, recorded):
    rng = random.Random(0)
    with ChaosServer(teacher, latency=0.15) as server:
        words = [*taught_words(server), "--out", "killed", "--resume"]
        kept = 0
        for _ in range(4):
            process = shell(*words, start=True)
            before, deadline = server.counts["requests"], time.monotonic() + 30
            while server.counts["requests"] <= before and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            trajectories = stored(recorded)
            whole = [one for one in trajectories if is_annotated(one)]
            assert all(is_annotated(one) or not one.steps[0].reasoning for one in trajectories)
            assert len(whole) >= kept, "an acknowledged explanation was lost"
            kept = len(whole)
        assert kept < EPISODES
        shell(*words)
        # What was answered is cached; at most the four under way at each kill are asked again.
        assert server.counts["requests"] <= EPISODES + 4 * 4
    check_taught(stored(recorded))
    assert result(shell, "killed")["trajectories"] == EPISODES


def test_what_was_collected_can_be_annotated_in_its_run_directory(shell, staircase):
    shell("collect", "--env", staircase, "--episodes", "10", "--out", "run")
    shell("annotate", "--store", "run", "--env", staircase)
    assert all(map(is_annotated, stored(shell.folder / "run")))
    (place,) = (shell.folder / "runs").iterdir()
    assert place.name.startswith("annotate-run-")


def test_the_key_is_used_and_found_nowhere(shell, recorded):
    shell.environment["MY_KEY"] = KEY
    with ChaosServer(lambda prompt: f"{KEY} {teacher(prompt)}", key=KEY) as server:
        words = [*taught_words(server, "llm.key_env=MY_KEY"), "--limit", "3", "--out", "keyed"]
        said = [shell(*words, "--dry-run"), shell(*words)]
        assert 'key_env = "MY_KEY"' in said[0].stdout
        shell.environment["MY_KEY"] = "sk-another-wrong-key-77"
        said.append(shell(*words[:-1], "refused", check=False))
    assert server.counts["right"] == 3
    assert server.counts["unauthorized"] > 0
    assert said[2].returncode == 1
    assert result(shell, "refused")["failed"] == {"LLMRefused": 3}
    files = [path for path in shell.folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    for secret in (KEY, "sk-another-wrong-key-77"):
        assert all(secret.encode() not in path.read_bytes() for path in files)
        assert all(secret not in done.stdout + done.stderr for done in said)


def test_a_server_that_refuses_everything_is_not_asked_for_ever(shell, recorded):
    with ChaosServer(teacher, rate=1.0, kinds=[Fault.BAD_REQUEST]) as server:
        done = shell(*taught_words(server), "--out", "refused", check=False)
        assert server.counts["requests"] < EPISODES
    assert done.returncode == 1
    assert "refused every request" in done.stderr


def test_a_server_that_stays_away_pauses_the_run_and_then_ends_it(shell, recorded):
    server = ChaosServer(teacher).start()
    server.stop()
    quick = ("llm.retries=0", "llm.failures=2", "llm.longest_wait=0.5")
    words = [*taught_words(server, *quick), "--out", "away", "--resume"]
    done = shell(*words, "--set", "llm.patience=1.2", check=False)
    assert done.returncode == TAKES_AGAIN
    assert "The language model does not answer: teacher at http://127.0.0.1" in done.stdout
    assert "next try in" in done.stdout
    assert "Ctrl-C is safe" in done.stdout
    assert "--resume --out away" in done.stderr
    assert "Traceback" not in done.stderr
    names = [event["event"] for event in events(shell, "away")]
    assert {"llm_paused", "llm_probe_failed", "llm_gave_up", "stopped"} <= set(names)
    assert not (shell.folder / "away/result.json").exists()
    # Now it comes back while the resumed run waits for it, which may have more patience.
    process = shell(*words, "--set", "llm.patience=60", start=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        names = [event["event"] for event in events(shell, "away")]
        if names.count("llm_paused") == 2:
            break
        time.sleep(0.05)
    with ChaosServer(teacher, port=server.port):
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert "llm_resumed" in [event["event"] for event in events(shell, "away")]
    shell_result = result(shell, "away")
    assert shell_result["trajectories"] + len(shell_result["failures"]) == EPISODES
    assert shell_result["trajectories"] >= EPISODES - 1
    assert shell_result["llm"]["llm/pauses"] == 1


def test_an_interrupt_while_waiting_is_safe(shell, recorded):
    server = ChaosServer(teacher).start()
    server.stop()
    words = [*taught_words(server, "llm.retries=0", "llm.failures=1"), "--out", "stopped"]
    process = shell(*words, start=True)
    path, deadline = shell.folder / "stopped/events.jsonl", time.monotonic() + 60
    while time.monotonic() < deadline and "llm_paused" not in (
        path.read_text() if path.exists() else ""
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "--resume --out stopped" in errors
    assert "Traceback" not in errors


def test_a_spent_budget_stops_and_a_higher_one_goes_on(shell, recorded):
    with ChaosServer(teacher) as server:
        words = [*taught_words(server, "annotate.max_tokens=300"), "--out", "paid", "--resume"]
        done = shell(*words, "--set", "llm.token_ceiling=6000", check=False)
        assert done.returncode == TAKES_AGAIN
        assert "Raise the ceiling" in done.stderr
        some = sum(map(is_annotated, stored(recorded)))
        assert 0 < some < EPISODES
        shell(*words, "--set", "llm.token_ceiling=1000000")
        # Calls that were under way at the stop are paid and lost: at most four at once.
        assert EPISODES <= server.counts["requests"] <= EPISODES + 3
    check_taught(stored(recorded))
    assert result(shell, "paid")["llm"]["llm/billed_calls"] == server.counts["requests"]
