"""Run a chaos server from the shell: `python -m dreamgym.llm.chaos --rate 0.1`."""

from __future__ import annotations

import argparse
import signal
import sys

from dreamgym.errors import DreamGymError
from dreamgym.llm.chaos.faults import TRANSPORT_FAULTS, Fault, fault_named
from dreamgym.llm.chaos.server import ChaosServer

_ENDS = {signal.SIGINT, signal.SIGTERM}


def main() -> int:
    """Serve until interrupted or told to end, then say what happened."""
    parser = argparse.ArgumentParser(
        prog="python -m dreamgym.llm.chaos",
        description="An OpenAI-compatible server on loopback that echoes, and goes wrong.",
        epilog=f"Faults: {', '.join(Fault)}.",
    )
    parser.add_argument("--port", type=int, default=8099, help="0 means any free one")
    parser.add_argument("--rate", type=float, default=0.1, help="share of requests that go wrong")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of faults")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds every answer takes")
    parser.add_argument("--fault", action="append", default=[], help="only these; may be repeated")
    options = parser.parse_args()
    # Blocked before any thread starts, so that only `sigwait` below sees them.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        kinds = [fault_named(name) for name in options.fault] or TRANSPORT_FAULTS
        server = ChaosServer(
            rate=options.rate,
            kinds=kinds,
            seed=options.seed,
            latency=options.latency,
            port=options.port,
        ).start()
    except (DreamGymError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(f"{server.base_url}\n")
    sys.stdout.flush()
    signal.sigwait(_ENDS)
    server.stop()
    counts = sorted(server.counts.items())
    sys.stdout.write(", ".join(f"{name} {count}" for name, count in counts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
