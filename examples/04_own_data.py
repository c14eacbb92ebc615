"""Your own data: chat logs of an agent go into a store; what is no experience stays out.

The same from the shell: `dreamgym import logs.jsonl --store STORE`, then `dreamgym export`.
"""

import json
from pathlib import Path

from dreamgym import Split, open_store
from dreamgym.records import detect, export_records, import_records

LOGS, HELD_OUT, OUT = Path("logs.jsonl"), Path("held_out.jsonl"), Path("for_trl.jsonl")
DESK = "library desk\nshelf: Emma; Middlemarch; Ulysses"


def chat(goal: str, *turns: str, **outcome: float) -> dict[str, object]:
    """Write one shift at a library down as chat messages, as many tools log them."""
    rules = {"role": "system", "content": "You work in a library."}
    told = [
        {"role": ("user", "assistant")[n % 2], "content": text}
        for n, text in enumerate((DESK, *turns))
    ]
    return {"messages": [rules, *told], "goal": goal, **outcome}


def write_logs() -> None:
    """Make the files: a success, a log that breaks off, one without an action; one held out."""
    take = "Thought: it is on the shelf.\nAction: take Emma"
    taken = "library desk\nshelf: Middlemarch; Ulysses\nin hand: Emma"
    lent = "library desk\nshelf: Middlemarch; Ulysses\n> Ada thanks you."
    other = "library desk\nshelf: Emma; Middlemarch\nin hand: Ulysses"
    logs = [
        chat("lend Emma to Ada", take, taken, "lend Emma to Ada", lent, success=True, reward=1.0),
        chat("lend Ulysses to Carl", "take Ulysses", other, "lend Ulysses to Carl"),
        chat("lend Middlemarch to Grace"),
    ]
    LOGS.write_text("".join(json.dumps(one) + "\n" for one in logs))
    HELD_OUT.write_text(json.dumps(chat("lend Emma to Sofia", take, taken)) + "\n")


def main() -> None:
    """Import, look at what was left out and why, search, export."""
    write_logs()
    print(f"{LOGS} is in the format '{detect(LOGS)}'")
    with open_store(Path("experience.sqlite")) as store:
        with import_records([LOGS], env="library", max_bad_share=0.5) as imported:
            report = imported.report
            print(f"{report.good} of {report.records} records are episodes. The rest:")
            for bad in report.first_bad:
                print(f"  {bad}")
            added, again = store.add(imported), store.add(imported)
        print(f"\nstored: {added.trajectories} episodes, {added.transitions} distinct steps")
        for no in added.refused:
            print(f"  but no search finds step {no.index} of one ({no.rule}: {no.reason})")
        print(f"stored again: {again.trajectories} episodes, {again.known} are known")
        with import_records([HELD_OUT], env="library", split=Split.TEST) as held_out:
            for no in store.add(held_out).refused:
                print(f"held out: not stored ({no.rule}: {no.reason})")

        asked = "take Middlemarch"
        print(f"\nasked: {DESK!r} > {asked}")
        for hit in store.search(DESK, asked, k=2):
            one = hit.transition
            print(f"{hit.similarity:.2f}  {one.action} -> {one.next_state!r}; why: {one.reasoning}")

        rows = export_records(store.trajectories(), OUT, format="trl")
    print(f"\n{OUT}: {rows} rows, a step each. The second:")
    row = json.loads(OUT.read_text().splitlines()[1])
    for part in ("prompt", "completion"):
        for message in row[part]:
            print(f"  {part:10}  {message['role']:9}  {message['content']!r}")


main()
