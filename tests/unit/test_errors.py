import json
import pickle

import pytest

from dreamgym import errors
from dreamgym.errors import AgentError, ConfigError, DreamGymError, EnvError, EnvTimeout, boundary

TREE = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, DreamGymError)
]


def test_a_boundary_names_who_broke():
    with pytest.raises(EnvError, match=r"env\.step: KeyError: 'coin'") as caught, \
            boundary(EnvError, "env.step"):  # fmt: skip
        raise KeyError("coin")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_boundary_says_which_line_of_whose_file_broke():
    def own_code():
        return json.loads("no json")  # raised deep in the library, meant here

    line = own_code.__code__.co_firstlineno + 1
    with pytest.raises(AgentError, match=rf"\(unit/test_errors\.py:{line}\)$"), \
            boundary(AgentError, "agent.act"):  # fmt: skip
        own_code()


def test_our_own_errors_pass_a_boundary_unchanged():
    with pytest.raises(EnvTimeout, match="^slow$"), boundary(AgentError, "agent.act"):
        raise EnvTimeout("slow")


def test_an_interrupt_passes_a_boundary():
    with pytest.raises(KeyboardInterrupt), boundary(EnvError, "env.step"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", TREE)
def test_errors_survive_the_way_between_processes(kind):
    copy = pickle.loads(pickle.dumps(kind("what happened")))
    assert type(copy) is kind
    assert str(copy) == "what happened"


@pytest.mark.parametrize("kind", TREE)
def test_the_drawn_tree_is_the_tree(kind):
    assert kind.__name__ in (errors.__doc__ or "")


def test_hints_name_the_nearest():
    assert errors.did_you_mean("coim", ["coin", "twc"]) == " Did you mean 'coin'? Known: coin, twc."
    assert errors.did_you_mean("zzz", ["coin"]) == " Known: coin."
    assert issubclass(ConfigError, ValueError)
