"""Any trajectory there may be, with texts that look like something else."""

from hypothesis import strategies as st

from dreamgym.types import (
    Action,
    EpisodeFailure,
    Observation,
    Provenance,
    SampledTokens,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["", " ", "go north", "Thought: x", "Thought:\na\n\nAction:\nb", "<think>a</think>b",
         "Action: look", "a\r\nb", "\u2028", "\x00", "Your task is to: win", "ok"],
    ),
)  # fmt: skip
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def step_results(draw):
    terminated = draw(st.booleans())
    admissible = draw(st.none() | st.lists(texts, max_size=2).map(tuple))
    return StepResult(
        Observation(draw(texts), admissible),
        reward=draw(numbers),
        terminated=terminated,
        truncated=draw(st.booleans()),
        success=terminated and draw(st.booleans()),
        refused=draw(st.booleans()),
    )


@st.composite
def trajectories(draw):
    tokens = st.lists(st.tuples(st.integers(0, 2**40), numbers), max_size=2).map(
        lambda pairs: SampledTokens(
            tuple(one for one, _ in pairs), tuple(score for _, score in pairs)
        )
    )
    steps = st.builds(
        Step,
        st.builds(Action, texts, st.none() | tokens),
        step_results(),
        reasoning=st.none() | texts,
        references=st.lists(texts, max_size=2).map(tuple),
    )
    task = st.builds(
        Task,
        texts, texts, texts, st.sampled_from(Split), texts, st.sampled_from(Source),
        st.none() | texts, st.lists(texts, max_size=2).map(tuple),
    )  # fmt: skip
    opening = st.builds(Observation, texts, st.none() | st.lists(texts, max_size=2).map(tuple))
    provenance = st.builds(
        Provenance, st.sampled_from(Source), texts, st.integers(0, 2**62), texts, texts, texts
    )
    return Trajectory(
        draw(texts),
        draw(task),
        draw(opening),
        tuple(draw(st.lists(steps, max_size=3))),
        draw(st.sampled_from(StopReason)),
        draw(provenance),
        draw(st.none() | st.builds(EpisodeFailure, texts, texts, texts)),
    )
