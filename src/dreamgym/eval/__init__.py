"""Evaluation: how well a policy does in the real environment, and what that figure is worth."""

from dreamgym.eval.evaluate import EvalReport, evaluate

__all__ = ["EvalReport", "evaluate"]
