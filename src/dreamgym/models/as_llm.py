"""A local model seen as an `LLM`: requests in words, answered in full batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dreamgym.errors import LLMRefused
from dreamgym.models.batcher import MicroBatcher
from dreamgym.models.causal import CausalLM
from dreamgym.models.decode import Answer, Decoder, Query
from dreamgym.models.scoring import Choice, Scores
from dreamgym.models.tokenizer import Tokenizer
from dreamgym.types import (
    Completion,
    Message,
    Request,
    SampledTokens,
    Usage,
    derive_seed,
)


class LocalLLM:
    """Answers requests with a model in this process.

    The answer to a request of temperature 0, or with a seed, depends on nothing but the request and
    the weights. JSON schemas are not enforced.
    """

    def __init__(
        self,
        model: CausalLM,
        tokenizer: Tokenizer,
        *,
        name: str = "local",
        seed: int = 0,
        top_p: float = 1.0,
        decoder: Decoder | None = None,
        max_rows: int = 256,
        max_tokens: int = 131_072,
        tick_seconds: float = 0.002,
    ) -> None:
        """Take a model and its tokenizer.

        Args:
            model: the model; whoever trains it does not do so while requests are under way.
            tokenizer: the model's own.
            name: goes into every completion.
            seed: for requests that are sampled without a seed of their own, in order of arrival.
            top_p: draw from the smallest set of best tokens with this probability.
            decoder: one with settings of your own.
            max_rows: the most requests in a batch.
            max_tokens: the most prompt and answer tokens in a batch: later comers wait.
            tick_seconds: how long to wait for company.
        """
        self._model, self._tokenizer = model, tokenizer
        self._name, self._seed, self._top_p = name, seed, top_p
        self._decoder = decoder or Decoder(model, max_rows=max_rows)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"dreamgym-{name}")
        self._unseeded = 0
        self._stop_marks: dict[str, frozenset[int]] = {}
        limits = {"max_size": max_rows, "max_weight": max_tokens}
        self._answers = MicroBatcher[Query, Answer](
            self._decoder.generate, self._thread, tick_seconds=tick_seconds, **limits
        )
        self._scores = MicroBatcher[Choice, Scores](
            self._decoder.score, self._thread, tick_seconds=tick_seconds, **limits
        )

    async def complete(self, request: Request) -> Completion:
        """Answer one request, together with others that come about now."""
        query = self._query(request)
        answer = await self._answers.ask(query, weight=len(query.ids) + query.max_new)
        return self._completion(request, query, answer)

    async def score(
        self, prompt: str | tuple[Message, ...], candidates: Sequence[str], *, end: bool = True
    ) -> Scores:
        """Return the log-probability of each token of each candidate as an answer to the prompt.

        With `end`, the token that ends an answer counts as the last one of each.
        """
        tail = tuple(sorted(self._tokenizer.end_ids))[:1] if end else ()
        answers = tuple((*self._tokenizer.encode(text), *tail) for text in candidates)
        ids = tuple(self._tokenizer.prompt_ids(prompt))
        if len(ids) + max(map(len, answers), default=0) > self._model.positions:
            raise LLMRefused(f"a prompt of {len(ids)} tokens leaves no room for its candidates")
        weight = len(ids) + sum(map(len, answers))
        return await self._scores.ask(Choice(ids, answers), weight=weight)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own."""
        return self._tokenizer

    @property
    def positions(self) -> int:
        """The longest sequence of tokens that the model reads."""
        return self._model.positions

    async def sample(
        self, ids: tuple[int, ...], *, max_new: int, temperature: float, seed: int
    ) -> SampledTokens:
        """Go on from tokens until one that ends an answer, or until `max_new` were added."""
        query = Query(
            ids,
            max_new=max_new,
            temperature=temperature,
            top_p=self._top_p,
            seed=derive_seed(seed),
            stop=self._tokenizer.end_ids,
        )
        answer = await self._answers.ask(query, weight=len(ids) + max_new)
        return SampledTokens(answer.ids, answer.logprobs)

    async def weigh(self, ids: tuple[int, ...], candidates: Sequence[tuple[int, ...]]) -> Scores:
        """Return the log-probability of each token of each candidate after these tokens."""
        weight = len(ids) + sum(map(len, candidates))
        return await self._scores.ask(Choice(ids, tuple(candidates)), weight=weight)

    async def close(self) -> None:
        """Refuse what waits, and end the thread."""
        await self._answers.close()
        await self._scores.close()
        self._thread.shutdown(wait=False)

    def _query(self, request: Request) -> Query:
        ids = tuple(self._tokenizer.prompt_ids(request.prompt))
        room = self._model.positions - len(ids)
        if not ids or room < 1 or request.max_tokens < 1:
            raise LLMRefused(
                f"a prompt of {len(ids)} tokens and an answer of up to {request.max_tokens}: the "
                f"model needs at least one of each, and {self._model.positions} at most together"
            )
        return Query(
            ids,
            max_new=min(request.max_tokens, room),
            temperature=request.temperature,
            top_p=self._top_p,
            seed=self._next_seed() if request.seed is None else derive_seed(request.seed),
            stop=self._tokenizer.end_ids,
            ended=self._stop_test(request.stop),
        )

    def _next_seed(self) -> int:
        self._unseeded += 1
        return derive_seed(self._seed, "unseeded", self._unseeded)

    def _stop_test(self, stops: tuple[str, ...]) -> Callable[[Sequence[int]], bool] | None:
        """Return a test whether an answer holds one of the stop texts, or None without any."""
        if not any(stops):
            return None
        tests = [(text, self._marks_of(text)) for text in stops if text]

        def ended(ids: Sequence[int]) -> bool:
            for text, marks in tests:
                # A character takes at most four tokens, its bytes; look a little further back.
                if ids[-1] in marks and text in self._tokenizer.decode(ids[-4 * len(text) - 4 :]):
                    return True
            return False

        return ended

    def _marks_of(self, text: str) -> frozenset[int]:
        """Return the tokens that a stop text can end with, so that few answers need a look."""
        if text not in self._stop_marks:
            pieces = map(self._tokenizer.decode, ([n] for n in range(self._tokenizer.vocab_size)))
            # Half a character shows as a replacement sign; a space may belong to the next word.
            last = {text[-1], "\ufffd"}
            self._stop_marks[text] = frozenset(
                n for n, piece in enumerate(pieces) if text[-1] == " " or last & set(piece)
            )
        return self._stop_marks[text]

    def _completion(self, request: Request, query: Query, answer: Answer) -> Completion:
        ids = answer.ids
        spoken = ids[:-1] if ids[-1] in query.stop else ids
        text = self._tokenizer.decode(spoken)
        for stop in request.stop:
            text = text.partition(stop)[0] if stop else text
        return Completion(
            text=text,
            model=self._name,
            truncated=not answer.stopped,
            usage=Usage(len(query.ids), len(ids)),
            tokens=SampledTokens(ids, answer.logprobs),
        )
