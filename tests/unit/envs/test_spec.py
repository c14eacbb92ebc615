"""Specs: one canonical text per environment, and clear words for what is no spec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.envs.spec import EnvSpec, parse_spec, read_params
from dreamgym.errors import ConfigError


def test_a_spec_has_family_name_and_sorted_parameters() -> None:
    spec = parse_spec("twx/coin?numLocations=6&includeDoors=0")
    assert spec == EnvSpec("twx", "coin", (("includeDoors", "0"), ("numLocations", "6")))
    assert str(spec) == "twx/coin?includeDoors=0&numLocations=6"
    assert str(parse_spec("gym/space/Env-v0")) == "gym/space/Env-v0"
    assert parse_spec("py").name == ""


@given(
    st.dictionaries(
        st.text("abcdefgh.", min_size=1), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_the_canonical_text_reads_back(params: dict[str, str]) -> None:
    spec = EnvSpec("py", "module:function", tuple(sorted(params.items())))
    assert parse_spec(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no environment"),
        ("/coin", "names no environment"),
        ("twx/coin?size", "parameters are written"),
        ("twx/coin?a=1&a=2", "parameter 'a' is given twice"),
    ],
)
def test_what_is_no_spec_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_spec(text)


def test_parameters_are_read_as_their_defaults_are() -> None:
    spec = parse_spec("x/y?size=5&rate=0.5&doors=yes&name=a b")
    defaults = {"size": 1, "rate": 1.0, "doors": False, "name": "", "left": 7}
    assert read_params(spec, defaults) == {
        "size": 5,
        "rate": 0.5,
        "doors": True,
        "name": "a b",
        "left": 7,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x?sise=1", "unknown parameter 'sise'. Did you mean 'size'?"),
        ("x?size=big", "size is a whole number, not 'big'"),
        ("x?rate=fast", "rate is a number, not 'fast'"),
        ("x?doors=maybe", "doors is yes or no, not 'maybe'"),
    ],
)
def test_wrong_parameters_are_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_params(parse_spec(text), {"size": 1, "rate": 1.0, "doors": False})
    assert message in str(caught.value)
