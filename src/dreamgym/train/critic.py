"""The critic of PPO: a small head that says, before every token, what return is to come.

It reads the hidden states of a model: the policy's own (nothing is computed twice) or another's.
"""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.models.causal import CausalLM
from dreamgym.models.requirement import nn, torch


class ValueHead(nn.Module):
    """One hidden layer on top of a model's hidden states; says 0 until it has learnt."""

    def __init__(self, hidden_size: int, *, seed: int = 0) -> None:
        super().__init__()
        self.inner = nn.Linear(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, 1)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.inner.weight.normal_(0, hidden_size**-0.5, generator=generator)
            for weight in (self.inner.bias, self.out.weight, self.out.bias):
                weight.zero_()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return a value for each hidden state [.., hidden]."""
        return self.out(torch.tanh(self.inner(hidden))).squeeze(-1)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Critic:
    """Who says what is to come."""

    head: ValueHead
    body: CausalLM | None = None
    """The model that reads; None for the policy itself."""
    detached: bool = False
    """Keep the value loss out of the body: only the head learns from it."""


def make_critic(policy: CausalLM, *, body: CausalLM | None = None, seed: int = 0) -> Critic:
    """Make a critic on the policy's own hidden states, or on another model's."""
    return Critic(ValueHead((body or policy).hidden_size, seed=seed), body)
