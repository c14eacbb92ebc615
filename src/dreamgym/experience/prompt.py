"""The prompts of the step job and the parsers of their answers, in two styles.

*Full* is a chat for instruct models: reasoning in `<think>`, the next state whole or as an edit,
flags by name (the paper's Figure 2). *Compact* is a plain text with marks for small models that
were trained on it. Both are made of the same values, and both directions of each stand here,
because they change together; `task_prompt.py` holds the two other jobs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dreamgym.experience.edit import Edit, diff, parse, render
from dreamgym.experience.hints import differences, goal_hint
from dreamgym.experience.history import Turn, notes_of
from dreamgym.experience.phrases import located
from dreamgym.experience.placeholders import PLACEHOLDERS, named, pointed
from dreamgym.protocols import Reference
from dreamgym.states import SAID, body_of, items, numbered, split_said, with_said
from dreamgym.types import Message, Transition, digest

MARKS = (
    "<goal>", "<notes>", "<past>", "<refs>", "<same>", "<state>", "<act>", "<at>", "<why>",
    "<then>", "<ok>", "<refused>", "<page>", "<reward>", "<win>", "<lose>", "<cont>", "<end>",
)  # fmt: skip
"""The special words of the compact style: one token each in a vocabulary made for it."""
END = "<end>"
_MARK = re.compile("|".join(map(re.escape, (*MARKS, *PLACEHOLDERS))))
_TAG = re.compile(r"</?(?:think|edit|next_state)>", re.IGNORECASE)


class Style(StrEnum):
    """How the model is spoken to."""

    FULL = "full"
    """A chat, for instruct models."""
    COMPACT = "compact"
    """Marked plain text, for small models trained on it."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What the model gets to see and must say; the paper's ablations turn one off each."""

    history: bool = True
    reasoning: bool = True
    references: bool = True
    window: int = 6
    """Turns of the history that are shown in full; earlier ones leave notes only."""
    notes: int = 6
    """The most notes that are shown."""
    reference_states: bool = False
    """Show the states of references also in the compact style; the full style always does."""
    rewards: bool = True
    """Say rewards that are not just 1 for success; without, the compact style leaves them out."""
    placeholders: bool = False
    """Point at the things of an action instead of naming them, in the compact style."""
    hints: bool = False
    """Say by rule how references differ and what of the goal is here, in the compact style."""


@dataclass(frozen=True, slots=True)
class StepQuery:
    """Everything that the step job is about."""

    goal: str
    state: str
    action: str
    history: tuple[Turn, ...] = ()
    references: tuple[Reference, ...] = ()
    task_id: str = ""
    """References of this very task are facts about it, those of others only alike."""
    lacking: tuple[str, ...] | None = None
    """What the goal needs and lacks (`goals.py`), for a hint; None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """A reply as it was read."""

    edit: Edit
    reasoning: str = ""
    refused: bool = False
    done: bool = False
    success: bool = False
    reward: float = 0.0

    def __post_init__(self) -> None:
        """Refuse answers that contradict themselves."""
        if not math.isfinite(self.reward):
            raise ValueError(f"the reward {self.reward} is not a finite number")
        if self.success and not self.done:
            raise ValueError("Success is true but Done is not: a task is achieved only at its end")
        if self.refused and self.success:
            raise ValueError("a refused action cannot achieve the task")
        if self.refused and self.reward > 0:
            raise ValueError(f"a refused action earns no reward, this one {self.reward:g}")


def answer_of(transition: Transition, *, reasoning: str | None = None) -> StepAnswer:
    """Return the answer that a recorded transition stands for: what a model learns to say."""
    why = transition.reasoning if reasoning is None else reasoning
    return StepAnswer(
        edit=diff(transition.state, transition.next_state),
        reasoning=why or "",
        refused=transition.refused,
        done=transition.done,
        success=transition.success,
        reward=min(transition.reward, 0.0) if transition.refused else transition.reward,
    )


def step_prompt(
    query: StepQuery, *, style: Style, switches: Switches | None = None
) -> str | tuple[Message, ...]:
    """Return the prompt of the step job."""
    asked = switches or Switches()
    return _compact(query, asked) if style is Style.COMPACT else _full(query, asked)


def step_answer_text(
    answer: StepAnswer, *, style: Style, switches: Switches | None = None, action: str = ""
) -> str:
    """Return an answer to an action as a model should write it: `read_step_answer` reads it."""
    asked = switches or Switches()
    if style is Style.COMPACT:
        return _compact_answer(answer, action, asked)
    return _full_answer(answer, reasoning=asked.reasoning)


def read_step_answer(
    text: str, *, style: Style, switches: Switches | None = None, action: str = ""
) -> StepAnswer:
    """Read a reply to an action. Raises `ValueError` that tells the model what is wrong with it."""
    asked = switches or Switches()
    if style is Style.COMPACT:
        told = named(text, _acted(action)) if asked.placeholders else text
        return _read_compact(told, reasoning=asked.reasoning)
    return _read_full(text, reasoning=asked.reasoning)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- full style ---------------------------------------------------------------------------------

SYSTEM = """\
You are the environment that an agent acts in. You are given the agent's task, what happened so \
far, recorded steps of the real environment, the current state with its items numbered, and the \
agent's action. Say what the environment answers.

Be exact and be strict:
- The recorded steps are real. Where one is like this step, answer as it was answered there.
- An action on something that is not there, in the wrong place, in the wrong order, or not worded \
as the environment knows it, is refused: the state stays as it is and there is no reward.
- Never invent things, exits or contents that contradict what was shown before.
- Success is true only if the task is fully achieved by this very action; then Done is true too.

Answer in exactly this form:
<think>what the action is about, whether it can be carried out here, and what it changes</think>
<edit>
one change per line, or nothing if nothing changes
</edit>
Refused: True or False
Done: True or False
Success: True or False
Reward: a number, 0 unless the environment gives one

Changes refer to the numbers of the current state's items:
=3 text    item #3 now reads "text"
*3 thing   the list of item #3 has one thing more
/3 thing   the list of item #3 has one thing less
-3         item #3 is gone
+3 text    a new item before #3, in its line
&3 text    a new item after #3, in its line
|3 text    a new line before the line of #3; one number past the last item means at the end
> text     the environment says "text" to the action
Where the agent comes to another place, write instead of <edit>:
<next_state>
the whole new state, one line per line, without numbers
</next_state>
If that place was shown before, its first line alone is enough."""

_NO_THINKING = "<think>what the action is about, whether it can be carried out here, and what it \
changes</think>\n"


def _full(query: StepQuery, switches: Switches) -> tuple[Message, ...]:
    system = SYSTEM if switches.reasoning else SYSTEM.replace(_NO_THINKING, "")
    parts = [f"Task: {_one_line(query.goal)}"]
    if switches.history and query.history:
        parts += _full_history(query.history, switches)
    if switches.references and query.references:
        shown = [_full_reference(n, r.transition) for n, r in enumerate(query.references, start=1)]
        parts.append("Recorded steps, most similar first:\n" + "\n\n".join(shown))
    parts.append(f"Current state:\n{numbered(query.state) or '(empty)'}")
    parts.append(f"Action: {_TAG.sub('', _one_line(query.action))}")
    return Message("system", system), Message("user", "\n\n".join(parts))


def _full_history(history: Sequence[Turn], switches: Switches) -> list[str]:
    notes = notes_of(history, window=switches.window, most=switches.notes)
    parts = ["Said earlier:\n" + "\n".join(f"- {note}" for note in notes)] if notes else []
    first = max(0, len(history) - switches.window)
    turns = [
        f"{number}. {_TAG.sub('', _one_line(turn.action))} -> {_outcome(turn)}"
        for number, turn in enumerate(history[first:], start=first + 1)
    ]
    return [*parts, "Earlier turns:\n" + "\n".join(turns)] if turns else parts


def _outcome(turn: Turn) -> str:
    words = " / ".join(turn.said)
    done = "refused" if turn.refused else "done"
    return f"refused: {words}" if turn.refused and words else words or done


def _full_reference(number: int, one: Transition) -> str:
    answer = _full_answer(answer_of(one, reasoning=""), reasoning=False)
    return f"[{number}] State:\n{numbered(one.state)}\nAction: {_one_line(one.action)}\n{answer}"


def _full_answer(answer: StepAnswer, *, reasoning: bool) -> str:
    lines = [f"<think>{answer.reasoning}</think>"] if reasoning else []
    if answer.edit.page is None:
        lines += ["<edit>", render(answer.edit), "</edit>"]
    else:
        page = with_said(answer.edit.page, answer.edit.said)
        lines += ["<next_state>", page, "</next_state>"]
    flags = {"Refused": answer.refused, "Done": answer.done, "Success": answer.success}
    lines += [f"{name}: {value}" for name, value in flags.items()]
    return "\n".join([*lines, f"Reward: {answer.reward!r}"])


def _read_full(text: str, *, reasoning: bool) -> StepAnswer:
    rest, why = _take_thoughts(text)
    if reasoning and not why:
        raise ValueError("there is no reasoning; begin with <think>...</think>")
    edits, states = _blocks(rest, "edit"), _blocks(rest, "next_state")
    if len(edits) + len(states) != 1:
        raise ValueError(
            f"there are {len(edits)} <edit> and {len(states)} <next_state> blocks; "
            "give exactly one of the two, closed by its end tag"
        )
    flags = re.sub(r"(?is)<(edit|next_state)>.*?</\1>", "\n", rest)
    return StepAnswer(
        edit=_read_edit(edits[0]) if edits else _read_page(states[0]),
        reasoning=why,
        refused=_flag(flags, "Refused"),
        done=_flag(flags, "Done"),
        success=_flag(flags, "Success"),
        reward=_number(flags, "Reward"),
    )


def _take_thoughts(text: str) -> tuple[str, str]:
    """Return what follows the reasoning, and the reasoning; some servers strip its opening tag."""
    before, closed, rest = text.partition("</think>")
    if not closed:
        if re.search(r"<think>", text, re.IGNORECASE):
            raise ValueError("<think> is never closed")
        return text, ""
    if _TAG.search(rest) and re.search(r"</?think>", rest, re.IGNORECASE):
        raise ValueError("there is more than one <think> block")
    return rest, before.replace("<think>", "").strip()


def _blocks(text: str, tag: str) -> list[str]:
    found = re.findall(rf"(?is)<{tag}>(.*?)</{tag}>", text)
    return [block.replace("\r\n", "\n").strip("\n").rstrip() for block in found]


def _read_edit(block: str) -> Edit:
    return parse("\n".join(line.strip() for line in _unfenced(block) if line.strip()))


def _read_page(block: str) -> Edit:
    lines = [line.rstrip() for line in _unfenced(block)]
    if not any(line.strip() for line in lines):
        raise ValueError("<next_state> is empty; if nothing changes, give an empty <edit>")
    # A model that copies the numbers of the current state means the items.
    plain = [re.sub(r"(^|; )#\d+ ", r"\1", line) for line in lines]
    body, said = split_said("\n".join(plain))
    return Edit(page=body, said=said)


def _unfenced(block: str) -> list[str]:
    return [line for line in block.split("\n") if not line.strip().startswith("```")]


def _flag(text: str, name: str) -> bool:
    (value,) = _one_value(
        {value.lower() for value in _values(text, name)}, f"'{name}: True' or '{name}: False'"
    )
    if value not in _WORDS:
        raise ValueError(f"{name} is '{value[:40]}'; write True or False")
    return _WORDS[value]


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _number(text: str, name: str) -> float:
    (value,) = _one_value(set(_values(text, name)), f"'{name}: <number>'")
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{name} is '{value[:40]}', which is not a number") from None


def _one_value(values: set[str], wanted: str) -> set[str]:
    if len(values) != 1:
        problem = "missing" if not values else "given twice, differently"
        raise ValueError(f"the line {wanted} is {problem}")
    return values


def _values(text: str, name: str) -> list[str]:
    found = re.findall(rf"(?im)^[\s*_-]*{name}[*_]*\s*:[*_]*\s*(.*?)[\s*_.]*$", text)
    return [value.strip() for value in found]


# --- compact style ------------------------------------------------------------------------------


def unmarked(text: str) -> str:
    """Return a text without the marks, so that no action can write the answer itself."""
    return _MARK.sub(lambda found: found[0].strip("<>"), text)


def _compact(query: StepQuery, switches: Switches) -> str:
    parts = [f"<goal>{unmarked(_one_line(query.goal))}"]
    if switches.history and query.history:
        notes = notes_of(query.history, window=switches.window, most=switches.notes)
        parts += ["<notes>" + "\n".join(map(unmarked, notes))] if notes else []
        first = max(0, len(query.history) - switches.window)
        parts += [_compact_turn(turn) for turn in query.history[first:]]
    if switches.references:
        # The nearest one last: closest to where the answer begins.
        parts += [
            _compact_reference(one.transition, query, switches)
            for one in reversed(query.references)
        ]
    parts.append(f"<state>{unmarked(numbered(query.state))}")
    action = _acted(query.action)
    found = [*located(items(query.state), action)]
    if switches.hints:
        found.append(goal_hint(query.goal, query.state, action, lacking=query.lacking))
    where = "\n".join(map(unmarked, found))
    parts.append(f"<act>{action}<at>{_told(where, action, switches)}")
    return "".join(parts) + ("<why>" if switches.reasoning else "<then>")


def _acted(action: str) -> str:
    return unmarked(_one_line(action))


def _told(text: str, action: str, switches: Switches) -> str:
    return pointed(text, action) if switches.placeholders else text


def _compact_turn(turn: Turn) -> str:
    said = "".join(f"\n{SAID}{unmarked(words)}" for words in turn.said)
    return f"<past>{unmarked(_one_line(turn.action))}{'<refused>' if turn.refused else ''}{said}"


def _compact_reference(one: Transition, query: StepQuery, switches: Switches) -> str:
    own = one.task_id == query.task_id
    before = "<same>" if own else "<refs>"
    if switches.reference_states:
        before += unmarked(numbered(one.state))
    elif switches.hints and own:
        before += unmarked(differences(query.state, one.state))
    answer = _compact_rest(answer_of(one, reasoning=""), rewards=switches.rewards)
    action = _acted(one.action)
    return f"{before}<act>{action}<then>{_told(answer, action, switches)}"


def _compact_answer(answer: StepAnswer, action: str, switches: Switches) -> str:
    why = f"{unmarked(answer.reasoning)}<then>" if switches.reasoning else ""
    told = f"{why}{_compact_rest(answer, rewards=switches.rewards)}"
    return _told(told, _acted(action), switches) + END


def _compact_rest(answer: StepAnswer, *, rewards: bool) -> str:
    verdict = "<refused>" if answer.refused else "<ok>"
    if answer.edit.page is None:
        change = unmarked(render(answer.edit))
    else:
        change = "<page>" + unmarked(with_said(answer.edit.page, answer.edit.said))
    end = "<win>" if answer.success else "<lose>" if answer.done else "<cont>"
    usual = 1.0 if answer.success else 0.0
    told = rewards and answer.reward != usual
    reward = f"<reward>{answer.reward!r}" if told else ""
    return f"{verdict}{change}{reward}{end}"


_COMPACT = re.compile(
    r"\s*<(ok|refused)>(?P<page><page>)?(?P<change>[^<]*(?:<(?!reward>|win>|lose>|cont>)[^<]*)*)"
    r"(?:<reward>(?P<reward>[^<]*))?<(?P<end>win|lose|cont)>\s*"
)


def _read_compact(text: str, *, reasoning: bool) -> StepAnswer:
    said, _, _ = text.partition(END)
    why, then, rest = said.partition("<then>") if reasoning else ("", "<then>", said)
    if not then:
        raise ValueError("there is no <then> after the reasoning")
    found = _COMPACT.fullmatch(rest)
    if found is None:
        raise ValueError(
            "after <then> comes <ok> or <refused>, then an edit or <page> and a page, then "
            "<win>, <lose> or <cont>"
        )
    change = found["change"].strip("\n ")
    stray = _MARK.search(change)
    if stray:
        raise ValueError(f"{stray[0]} stands in the middle of the next state")
    if found["page"] and not body_of(change).strip():
        raise ValueError("<page> is empty")
    body, words = split_said(change)
    return StepAnswer(
        edit=Edit(page=body, said=words) if found["page"] else parse(change),
        reasoning=why.strip(),
        refused=found[1] == "refused",
        done=found["end"] != "cont",
        success=found["end"] == "win",
        reward=_compact_reward(found["reward"], won=found["end"] == "win"),
    )


def _compact_reward(text: str | None, *, won: bool) -> float:
    if text is None:
        return 1.0 if won else 0.0
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"<reward> is '{text[:40]}', which is not a number") from None


PROMPT_DIGEST = digest("\x1f".join([SYSTEM, *MARKS, "layout 5"]))
"""Changes with the prompts: part of every dreamed record. Raise the layout when it changes."""
