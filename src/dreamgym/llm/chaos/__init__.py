"""A language-model server that goes wrong on purpose: `ChaosServer`, and faults to choose from."""

from dreamgym.llm.chaos.faults import CONTENT_FAULTS, TRANSPORT_FAULTS, Fault
from dreamgym.llm.chaos.server import ChaosServer, echo

__all__ = ["CONTENT_FAULTS", "TRANSPORT_FAULTS", "ChaosServer", "Fault", "echo"]
