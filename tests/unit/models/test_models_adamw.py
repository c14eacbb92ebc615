"""Our AdamW against torch's own class: the same bits, without loading a compiler."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from dreamgym.models.adamw import AdamW  # noqa: E402


def train(make):
    """Train a small net: two rates, a schedule, and a weight that misses one step."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(9, 17), torch.nn.Tanh(), torch.nn.Linear(17, 3))
    weights = list(net.parameters())
    optimizer = make(
        [
            {"params": [one for one in weights if one.dim() >= 2], "weight_decay": 0.1},
            {"params": [one for one in weights if one.dim() < 2], "weight_decay": 0.0, "lr": 0.03},
        ]
    )
    generator = torch.Generator().manual_seed(1)
    for step in range(8):
        optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
        optimizer.zero_grad()
        net(torch.randn(5, 9, generator=generator)).square().sum().backward()
        if step == 4:
            weights[-1].grad = None
        optimizer.step()
    return weights, optimizer.state


def test_it_comes_to_the_same_bits_as_torch():
    ours, moments = train(lambda groups: AdamW(groups, lr=0.01, betas=(0.9, 0.95)))
    theirs, expected = train(
        lambda groups: torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), fused=True)
    )
    for our, their in zip(ours, theirs, strict=True):
        assert torch.equal(our, their)
        assert moments[our].keys() == expected[their].keys()
        for name, moment in moments[our].items():
            assert torch.equal(moment, expected[their][name]), name
    assert moments[ours[-1]]["step"] == 7
    assert moments[ours[0]]["step"] == 8


def test_gradients_are_forgotten():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    AdamW([{"params": [weight], "weight_decay": 0.0}], lr=0.1, betas=(0.9, 0.99)).zero_grad()
    assert weight.grad is None


def test_the_compiler_of_torch_is_not_loaded():
    code = """
import sys, torch
from dreamgym.models.adamw import AdamW
weight = torch.nn.Parameter(torch.ones(2))
weight.grad = torch.ones(2)
AdamW([{"params": [weight], "weight_decay": 0.0}], lr=0.1, betas=(0.9, 0.99)).step()
assert weight[0] < 1
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
