"""The section on learning by trial: what is refused."""

import pytest

from dreamgym.config import RlConfig
from dreamgym.errors import ConfigError


@pytest.mark.parametrize(
    "wrong",
    [
        {"reward": "praise"},
        {"unknown": "win"},
        {"kl_estimator": "k1"},
        {"steps": 0},
        {"group_size": 0},
        {"kl": -0.1},
        {"eval_every": -1},
        {"learning_rate": 0.0},
        {"temperature": 0.0},
        {"clip": 0.0},
        {"minibatches": 5},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=name):
        RlConfig(**wrong)


def test_a_batch_that_does_not_divide_is_told_with_its_numbers():
    with pytest.raises(ConfigError, match=r"3 groups of 5 episodes do not divide into 2"):
        RlConfig(groups=3, group_size=5)
