"""The demo job: every stage from recording to sim-to-real, each by its own job.

Stages that are finished are not repeated. Where the audit shuts the gate, nothing is trained.
"""

from __future__ import annotations

from dreamgym.audit import check_gate, read_audit
from dreamgym.config import RunConfig
from dreamgym.files import write_atomically
from dreamgym.jobs.audit import thresholds_of
from dreamgym.jobs.demo_plan import plan_demo
from dreamgym.jobs.demo_result import DemoOutcome, demo_page, read_outcome
from dreamgym.jobs.report import PAGE, find_references
from dreamgym.jobs.stages import OnTick, finish_stage
from dreamgym.runs import RunDir


def run_demo(config: RunConfig, run: RunDir, *, on_tick: OnTick = lambda tick: None) -> DemoOutcome:
    """Run what is missing; leave `result.json` and `report.html`."""
    root = run.path.absolute()
    stages = plan_demo(config, root)
    reasons: tuple[str, ...] = ()
    for stage in stages:
        if stage.job == "rl":
            reasons = check_gate(read_audit(root / "audit"), thresholds_of(config.audit))
            if reasons:
                break
        finish_stage(stage, root / stage.name, run, on_tick=on_tick)
    outcome = read_outcome(config, root, stages, reasons=reasons)
    write_atomically(root / PAGE, demo_page(outcome, root, look_up=find_references))
    run.result(outcome.result)
    run.event("finished", gate_open=not reasons)
    return outcome
