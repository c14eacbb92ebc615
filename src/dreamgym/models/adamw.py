"""AdamW: torch's own fused arithmetic, without the class that torch wraps around it.

Whoever makes one of torch's optimizers loads its whole compiler, which nothing here uses and which
takes as long as the rest of a start. The weights come out the same to the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dreamgym.models.requirement import load, torch

Moments = dict[str, torch.Tensor]
_adamw = load("torch.optim.adamw").adamw


class AdamW:
    """Step weights along their gradients.

    Attributes:
        param_groups: weights with settings of their own, `lr` among them; it may be changed.
        state: the moments of each weight that was ever stepped; they may be replaced.
    """

    def __init__(
        self, groups: Iterable[Mapping[str, Any]], *, lr: float, betas: tuple[float, float]
    ) -> None:
        self.param_groups: list[dict[str, Any]] = [{"lr": lr, **group} for group in groups]
        self.state: defaultdict[torch.Tensor, Moments] = defaultdict(dict)
        self._betas = betas

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for weight in group["params"]:
                weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every weight that has a gradient."""
        for group in self.param_groups:
            moved = [weight for weight in group["params"] if weight.grad is not None]
            if moved:
                self._move(moved, lr=group["lr"], weight_decay=group["weight_decay"])

    def _move(self, weights: list[torch.Tensor], *, lr: float, weight_decay: float) -> None:
        for weight in weights:
            if not self.state[weight]:
                self.state[weight] = {
                    "step": torch.zeros((), dtype=torch.float32, device=weight.device),
                    "exp_avg": torch.zeros_like(weight),
                    "exp_avg_sq": torch.zeros_like(weight),
                }
        kept = [self.state[weight] for weight in weights]
        _adamw(
            weights,
            [weight.grad for weight in weights],
            [one["exp_avg"] for one in kept],
            [one["exp_avg_sq"] for one in kept],
            [],
            [one["step"] for one in kept],
            fused=True,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=lr,
            weight_decay=weight_decay,
            eps=1e-8,
            maximize=False,
        )
