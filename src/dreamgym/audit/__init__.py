"""The audit: may one train in this dream? Measures against reality, and a gate."""

from dreamgym.audit.audit import AuditPlan, Player, Subject, audit
from dreamgym.audit.gate import GateFigures, Thresholds, check_gate, read_audit, read_audited
from dreamgym.audit.report import AuditReport

__all__ = [
    "AuditPlan",
    "AuditReport",
    "GateFigures",
    "Player",
    "Subject",
    "Thresholds",
    "audit",
    "check_gate",
    "read_audit",
    "read_audited",
]
