"""The gate: what opens it, what shuts it, and figures read from a file."""

import json
from dataclasses import replace

import pytest

from dreamgym.audit.gate import GateFigures, Thresholds, check_gate, read_audit
from dreamgym.errors import ConfigError

GOOD = GateFigures(
    precision=0.9, wins=5, gap=-0.1, false_success=0.02, invalid_refused=0.97, agreement=0.9
)


def test_just_good_enough_is_open():
    assert check_gate(GOOD, Thresholds()) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"precision": 0.899}, "on-policy precision is 0.899, at least 0.9"),
        ({"wins": 4}, "4 successes"),
        ({"gap": 0.101}, "gap between dream and real success is 0.101"),
        ({"gap": -0.2}, "gap between dream and real success is 0.200"),
        ({"false_success": 0.021}, "false success is 0.021, at most 0.02"),
        ({"invalid_refused": 0.96}, "invalid actions refused is 0.960"),
        ({"agreement": 0.5}, "outcome agreement is 0.500"),
        ({"unknown": 0.6}, "unknown episodes is 0.600"),
        ({"failed": 0.3}, "failed episodes is 0.300"),
        ({"precision": None}, "precision was not measured"),
        ({"invalid_refused": None}, "refused was not measured"),
    ],
)
def test_one_reason_each(change, words):
    (reason,) = check_gate(replace(GOOD, **change), Thresholds())
    assert words in reason


def test_the_worst_policy_decides():
    def policy(precision, gap, wins=9):
        return {
            "precision": {"mean": precision, "count": wins},
            "gap": {"mean": gap},
            "unknown": 1,
            "failed": 0,
            "episodes": 10,
        }

    result = {
        "one_step": {"false_success": {"mean": 0.0}, "invalid_refused": {"mean": 1.0}},
        "closed_loop": {"agreement": {"mean": 1.0}, "unknown": 3, "failed": 0, "episodes": 10},
        "on_policy": [policy(1.0, 0.0), policy(0.5, -0.3, wins=2)],
    }
    figures = GateFigures.from_plain(result)
    assert (figures.precision, figures.wins, figures.gap) == (0.5, 2, -0.3)
    assert figures.unknown == 0.3
    unmeasured = {**result, "on_policy": [policy(1.0, 0.0), policy(None, 0.0)]}
    assert GateFigures.from_plain(unmeasured).precision is None
    assert GateFigures.from_plain({**result, "on_policy": []}).precision is None


def test_a_missing_or_foreign_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match="no audit at"):
        read_audit(tmp_path)
    (tmp_path / "result.json").write_text(json.dumps({"command": "eval"}))
    with pytest.raises(ConfigError, match="not the result of an audit"):
        read_audit(tmp_path)
