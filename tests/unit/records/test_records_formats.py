"""Files written by hand to each format's published description, and what they are read as."""

import json

import pytest

from dreamgym.errors import ConfigError, RecordError
from dreamgym.records import FORMATS, BadRecord, detect, read_records
from dreamgym.types import Split, StopReason, Trajectory


def read_all(path, **options):
    found = list(read_records(path, **options))
    assert all(isinstance(one, Trajectory) for one in found), found
    return found


def told(trajectory):
    """Every action with its reasoning, the next state and the reward."""
    return [
        (step.reasoning, step.action.text, step.result.observation.text, step.result.reward)
        for step in trajectory.steps
    ]


def claims_nothing(trajectory):
    results = [step.result for step in trajectory.steps]
    return not any(one.reward or one.terminated or one.success for one in results)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("agenttraj.json", "sharegpt"),
        ("agentinstruct.jsonl", "sharegpt"),
        ("sharegpt_tools.json", "sharegpt"),
        ("messages.jsonl", "messages"),
        ("atif.json", "atif"),
        ("atif.jsonl", "atif"),
    ],
)
def test_the_format_is_told_by_content(data, tmp_path, file, name):
    disguised = tmp_path / "records.parquet.txt"
    disguised.write_bytes((data / file).read_bytes())
    assert detect(data / file) == detect(disguised) == name


def test_agenttraj(data):
    household, shop = read_all(data / "agenttraj.json")
    assert household.task.id == "alfworld_17"
    assert household.task.env == "alfworld"
    assert household.task.goal == "put a pen on the desk."
    assert household.opening.text.startswith("You are in the middle of a room.")
    assert told(household) == [
        ("Pens lie on beds sometimes.", "go to bed 1", "On the bed 1, you see a pen 2.", 0.0),
        ("There it is.", "take pen 2 from bed 1", "You pick up the pen 2 from the bed 1.", 0.0),
        ("Now the desk.", "put pen 2 in/on desk 1", "", 0.0),
    ]
    assert (shop.task.env, shop.task.goal) == ("webshop", "I want a blue mug under 20 dollars")
    assert [step.action.text for step in shop.steps] == ["search[blue mug]", "click[B01]"]
    assert claims_nothing(household)
    assert claims_nothing(shop)
    assert household.stop is StopReason.STEP_LIMIT
    assert household.provenance.behaviour == "imported:sharegpt"


def test_agentinstruct(data):
    shell, household = read_all(data / "agentinstruct.jsonl")
    assert shell.task.goal == shell.opening.text == "How many files are in /etc?"
    assert told(shell)[0][:2] == (
        "I list and count them.",
        "bash\n\n```bash\nls /etc | wc -l\n```",
    )
    assert told(household) == [
        ("It is right here.", "open cabinet 1", "You open the cabinet 1.", 0.0)
    ]


def test_sharegpt_with_system_prompt_and_tools(data):
    (chat,) = read_all(data / "sharegpt_tools.json")
    assert chat.opening.text == "What is the capital of France?"
    assert [step.result.observation.text for step in chat.steps] == ["Paris", ""]
    assert json.loads(chat.steps[0].action.text)["name"] == "lookup"


def test_messages(data):
    lamp, weather, keys, smith, agent = read_all(data / "messages.jsonl")
    assert (lamp.task.id, lamp.task.env, lamp.task.goal) == ("lamps#7", "lamps", "light the lamp.")
    assert lamp.opening.text == "Goal: light the lamp.\nYou are in a dark room with a switch."
    assert told(lamp) == [(None, "press switch", "The lamp is on.", 1.0)]
    assert lamp.success
    assert lamp.stop is StopReason.TERMINATED

    assert told(weather) == [
        ("Let me ask.", 'weather({"city": "Bern"})', "Rain", 0.0),
        (None, "It rains.", "", 0.0),
    ]
    assert claims_nothing(weather)

    assert told(keys) == [
        ("Any key will do.", "press a", "a", 0.25),
        ("Now another.", "press b", "b", 0.5),
    ]
    assert keys.opening.text == "Press a key.\n[image_url]"
    assert (keys.task.goal, keys.success, keys.stop) == (
        "Press keys.", False, StopReason.TERMINATED
    )  # fmt: skip

    assert smith.task.id == "imported#acme__add-12"
    assert smith.success
    assert smith.total_reward == 0.0, "an outcome is not turned into a reward"
    assert [step.action.text for step in smith.steps] == ["cat add.py", "submit"]

    assert claims_nothing(agent)
    assert [step.action.text for step in agent.steps] == ["ls", "submit"]


def test_atif_document(data):
    (one,) = read_all(data / "atif.json")
    assert one.task.goal == "What is the trading price of GOOGL?"
    assert told(one) == [
        (
            "The request needs the current price.\nI will search for it.",
            'financial_search({"metric": "price", "ticker": "GOOGL"})\n'
            'financial_search({"metric": "volume", "ticker": "GOOGL"})',
            "GOOGL is at 185.35\nGOOGL volume: 1.5M shares",
            0.0,
        ),
        (None, "It trades at 185.35.", "", 0.0),
    ]
    assert claims_nothing(one)


def test_atif_lines_with_rewards_in_their_extensions(data):
    walk, greeting = read_all(data / "atif.jsonl")
    assert told(walk) == [
        (None, "go north", "You are in the kitchen.", 0.5),
        (None, "go east", "You are in the garden.", 0.5),
    ]
    assert (walk.success, walk.task.goal) == (True, "reach the garden.")
    assert told(greeting) == [(None, "hello", "heard", 1.0)]
    assert (greeting.success, greeting.task.id) == (True, "imported#greet")


def test_hand_written_atif_is_valid(data):
    atif = pytest.importorskip("atif")
    atif.Trajectory.model_validate_json((data / "atif.json").read_bytes())
    for line in (data / "atif.jsonl").read_bytes().splitlines():
        atif.Trajectory.model_validate_json(line)


def test_the_importer_says_what_records_do_not(data):
    one, *_ = read_all(data / "agenttraj.json", env="alfworld/official?path=x", split=Split.DEV)
    assert one.task.env == "alfworld/official?path=x"
    assert one.task.id == "alfworld/official?path=x#alfworld_17"
    assert one.task.split is Split.DEV


def test_ids_are_made_of_content_alone(data, tmp_path):
    original = read_all(data / "agenttraj.json")
    records = json.loads((data / "agenttraj.json").read_text())
    moved = tmp_path / "moved.jsonl"
    moved.write_text("".join(json.dumps(record) + "\n" for record in reversed(records)))
    assert [one.id for one in read_all(moved)] == [one.id for one in reversed(original)]
    records[0]["conversations"][-1]["value"] += "!"
    moved.write_text(json.dumps(records))
    assert read_all(moved)[0].id != original[0].id


@pytest.mark.parametrize("name", ["messages", "sharegpt", "atif"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"success": "perhaps"}, "success is 'perhaps'"),
        ({"reward": "high"}, "reward is 'high'"),
        ({"done": [1]}, "done is a JSON list"),
    ],
)
def test_an_outcome_of_the_wrong_type_is_a_bad_record(tmp_path, name, change, reason):
    record = {
        "messages": {"messages": [{"role": "user", "content": "s"},
                                  {"role": "assistant", "content": "a"}], **change},
        "sharegpt": {"conversations": [{"from": "human", "value": "s"},
                                       {"from": "gpt", "value": "a"}], **change},
        "atif": {"schema_version": "ATIF-v1.2", "agent": {}, "final_metrics": {"extra": change},
                 "steps": [{"source": "user", "message": "s"},
                           {"source": "agent", "message": "a"}]},
    }[name]  # fmt: skip
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record))
    (bad,) = read_records(path)
    assert isinstance(bad, BadRecord)
    assert reason in bad.reason


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"messages": []}, "no action in it"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "no action in it"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "begins with an action"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "the role 'wizard'"),
        ({"messages": [{"role": ["user"], "content": "hi"}]}, "the role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content is 5"),
        ({"messages": ["hi"]}, "messages[0] is 'hi', not an object"),
        ({"messages": "[{"}, "holds no JSON"),
        ({"messages": {"role": "user"}}, "messages is a JSON object, not a list"),
        ({"messages": [{"role": "user", "content": "s"},
                       {"role": "assistant", "tool_calls": [{"function": {}}]}]}, "no function"),
        ({"conversations": [{"from": "martian", "value": "x"}]}, "is from 'martian'"),
        ({"conversations": None}, "conversations is absent"),
        ({"schema_version": "ATIF-v2.0", "steps": []}, "ATIF-v1.x can be read"),
        ({"schema_version": "ATIF-v1.3", "steps": [{"source": "dog"}]}, "source is 'dog'"),
        ({"v": 1, "kind": "task", "id": "x"}, "expected a trajectory"),
        ({"v": 99, "kind": "trajectory"}, "record version 99"),
        ({"rows": []}, "no format has these keys: rows"),
        ([1, 2], "a record is a JSON object"),
    ],
)  # fmt: skip
def test_bad_records_say_why(tmp_path, record, reason):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"a": 1}) + "\n" + json.dumps(record))
    _, bad = read_records(path)
    assert isinstance(bad, BadRecord)
    assert (bad.file, bad.place) == (path, 2)
    assert reason in bad.reason
    assert str(bad).startswith(f"{path}:2: ")


def test_a_forced_format_makes_others_bad(data):
    found = list(read_records(data / "messages.jsonl", format="sharegpt"))
    assert len(found) == 5
    assert all(isinstance(one, BadRecord) for one in found)


def test_a_file_of_several_formats_is_read_record_by_record(data, tmp_path):
    mixed = tmp_path / "mixed.jsonl"
    parts = [data / "messages.jsonl", data / "agentinstruct.jsonl", data / "atif.jsonl"]
    mixed.write_bytes(b"".join(part.read_bytes() for part in parts))
    assert len(read_all(mixed)) == 5 + 2 + 2


def test_unknown_and_unreadable_formats_are_refused_with_the_choices(data):
    with pytest.raises(ConfigError, match="Did you mean 'sharegpt'"):
        list(read_records(data / "agenttraj.json", format="sharegtp"))
    with pytest.raises(ConfigError, match="export only"):
        list(read_records(data / "agenttraj.json", format="trl"))


def test_nothing_recognised_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text("")
    with pytest.raises(RecordError, match="nothing in it"):
        detect(tmp_path / "a.json")
    with pytest.raises(RecordError, match="no such file"):
        detect(tmp_path / "b.json")
    (tmp_path / "a.json").write_text("hello\n" * 100)
    with pytest.raises(RecordError, match="not JSON"):
        detect(tmp_path)


def test_the_table_names_what_can_be_done():
    assert [name for name, one in FORMATS.items() if one.read is None] == ["trl", "verl"]
