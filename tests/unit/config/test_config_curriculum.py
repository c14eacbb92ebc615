"""The section on the curriculum: what is refused."""

import pytest

from dreamgym.config import CurriculumConfig, load_config
from dreamgym.errors import ConfigError


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "group"},
        {"maker": "nobody"},
        {"clusters": 0},
        {"rest": -1},
        {"half_life": 0.0},
        {"floor": 0.0},
        {"synthetic_share": 1.1},
        {"alike": -0.1},
        {"feasible_visits": 0},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=f"curriculum.{name}"):
        CurriculumConfig(**wrong)


def test_it_is_off_unless_asked_for():
    assert not load_config().curriculum.on
    assert load_config(settings=["curriculum.on=true"]).curriculum.on
