import asyncio

from dreamgym.agents.language_model import SILENCE, LanguageModelAgent, render_turn
from dreamgym.llm import ScriptedLLM
from dreamgym.types import Action, Observation, Split, Step, StepResult, Task

TASK = Task(id="t", env="e", key="1", split=Split.TRAIN, goal="win")
PAST = [Step(Action(f"go {n}"), StepResult(Observation(f"room {n}"))) for n in range(6)]


def test_the_model_reads_the_task_the_last_turns_and_the_state():
    text = render_turn(TASK, PAST, Observation("room 5\ncoin"))
    assert text == "Task: win\n> go 2\n> go 3\n> go 4\n> go 5\nroom 5\ncoin\n>"


def test_the_answer_is_the_action_and_each_turn_has_a_seed_of_its_own():
    llm = ScriptedLLM([" take coin ", "  "])
    agent = LanguageModelAgent(llm, 7)

    async def play():
        return [await agent.act(TASK, PAST[:n], Observation("s")) for n in (0, 1)]

    first, second = asyncio.run(play())
    assert (first.text, second.text) == ("take coin", SILENCE)
    seeds = [request.seed for request in llm.requests]
    assert len(set(seeds)) == 2
    assert llm.requests[0].stop == ("\n",)
