"""The sections on policies: what is refused."""

import pytest

from dreamgym.config import PolicyConfig, TrainConfig
from dreamgym.errors import ConfigError


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        (PolicyConfig, {"format": "verse"}),
        (PolicyConfig, {"choose": "all"}),
        (PolicyConfig, {"window": -2}),
        (PolicyConfig, {"mark_tried": True}),
        (PolicyConfig, {"temperature": -0.1}),
        (PolicyConfig, {"longest_action": 0}),
        (TrainConfig, {"algo": "sfx"}),
        (TrainConfig, {"demos": 0}),
        (TrainConfig, {"learning_rate": 0.0}),
        (TrainConfig, {"renaming": 1.5}),
        (TrainConfig, {"held_out_share": 1.0}),
        (TrainConfig, {"patience": -1}),
    ],
)
def test_settings_out_of_range_are_refused_by_name(section, wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=name):
        section(**wrong)
