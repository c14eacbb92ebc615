"""Decoding in batches: the answers of one at a time, whoever else is asked."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dreamgym.errors import ConfigError
from dreamgym.models.decode import Answer, Decoder, Query
from dreamgym.models.llama import Llama

STOP = frozenset({3, 4, 5})


def prompts(count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Random prompts; some share a long beginning, some are equal."""
    rng = random.Random(seed)
    common = tuple(rng.randrange(97) for _ in range(40))
    found = []
    for _ in range(count):
        own = tuple(rng.randrange(97) for _ in range(rng.randint(1, 60)))
        found.append(rng.choice([(), common[:20], common]) + own)
    return [*found, found[0], found[-1]]


def queries(count: int, **settings: object) -> list[Query]:
    rng = random.Random(1)
    lengths = [1, 3, 8, 20, 70]  # the last is more than a batch has room for at first
    asked = [Query(ids, max_new=rng.choice(lengths), stop=STOP) for ids in prompts(count)]
    return [replace(query, seed=number, **settings) for number, query in enumerate(asked)]


def ids_of(answers: list[Answer]) -> list[tuple[int, ...]]:
    return [answer.ids for answer in answers]


@pytest.mark.parametrize("name", ["llama", "grouped_llama"])
def test_greedy_answers_are_those_of_transformers(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    model: Llama = request.getfixturevalue(name)
    model.save(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path))
    asked = queries(10)
    answers = Decoder(model).generate(asked)
    for query, answer in zip(asked, answers, strict=True):
        whole = theirs.generate(
            torch.tensor([query.ids]),
            attention_mask=torch.ones(1, len(query.ids), dtype=torch.long),
            max_new_tokens=query.max_new,
            do_sample=False,
            eos_token_id=sorted(STOP),
            pad_token_id=0,
        )
        assert answer.ids == tuple(whole[0, len(query.ids) :].tolist())
        assert answer.stopped == (answer.ids[-1] in STOP)
    assert {answer.stopped for answer in answers} == {True, False}


@pytest.mark.parametrize("memory_mb", [0, 16])
@pytest.mark.parametrize("steady", [True, False])
def test_answers_do_not_depend_on_the_company(llama: Llama, memory_mb: int, steady: bool) -> None:
    asked = [
        replace(query, temperature=(0.0, 0.7, 1.0)[n % 3], top_p=(1.0, 0.9)[n % 2])
        for n, query in enumerate(queries(14))
    ]
    decoder = Decoder(llama, memory_mb=memory_mb, steady=steady, chunk_tokens=512)
    together = decoder.generate(asked)
    backwards = decoder.generate(asked[::-1])[::-1]
    few_rows = Decoder(llama, memory_mb=memory_mb, steady=steady, max_rows=7).generate(asked)
    alone = [Decoder(llama, memory_mb=0, steady=steady).generate([q])[0] for q in asked]
    little_room = Decoder(llama, memory_mb=memory_mb, steady=steady, cache_mb=0).generate(asked[:4])
    assert ids_of(little_room) == ids_of(together[:4])
    for others in (backwards, few_rows, alone):
        assert ids_of(others) == ids_of(together)
        for one, other in zip(together, others, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def rows_are_steady() -> bool:
    """Whether this processor's products give a row the same bits among 16 and among 256 rows."""
    x, weight = torch.randn(256, 128), torch.randn(384, 128)
    product = torch.nn.functional.linear
    return torch.equal(product(x[:16], weight), product(x, weight)[:16])


@pytest.mark.skipif(not rows_are_steady(), reason="products of this processor depend on the batch")
def test_steady_answers_are_the_same_to_the_last_bit(llama: Llama) -> None:
    asked = [replace(query, temperature=float(n % 2)) for n, query in enumerate(queries(20))]
    decoder = Decoder(llama)
    together = decoder.generate(asked)
    assert decoder.generate(asked) == together, "with everything remembered"
    alone = [Decoder(llama, memory_mb=0).generate([query])[0] for query in asked]
    assert alone == together


def test_guesses_never_change_an_answer(llama: Llama) -> None:
    """What was answered before is guessed; asked anew, and with other seeds, guesses go wrong."""
    asked = [replace(query, temperature=0.3 * (n % 3)) for n, query in enumerate(queries(12))]
    decoder = Decoder(llama)
    for seed in (1, 2, 1):
        drawn = [replace(query, seed=seed) for query in asked]
        fresh = [Decoder(llama).generate([query])[0] for query in drawn]
        assert ids_of(decoder.generate(drawn)) == ids_of(fresh)


def test_an_answer_known_before_takes_one_pass(llama: Llama) -> None:
    query = Query(tuple(range(20)), max_new=12)
    decoder = Decoder(llama)
    before = decoder.passes
    first = decoder.generate([query])
    middle = decoder.passes
    assert decoder.generate([query]) == first
    assert (middle - before > 2, decoder.passes - middle) == (True, 1)


def test_logprobs_are_those_of_a_whole_pass(llama: Llama) -> None:
    asked = queries(8, temperature=0.8)
    for query, answer in zip(asked, Decoder(llama).generate(asked), strict=True):
        with torch.no_grad():
            scores = llama(torch.tensor([[*query.ids, *answer.ids]]))[0, len(query.ids) - 1 : -1]
        logprobs = torch.log_softmax(scores / 0.8, dim=-1)
        right = logprobs.gather(1, torch.tensor(answer.ids)[:, None])[:, 0]
        assert answer.logprobs == pytest.approx(right.tolist(), abs=1e-4)


def test_seeds_decide_what_is_drawn(llama: Llama) -> None:
    query = Query(prompts(1)[0], max_new=30, temperature=1.0)
    asked = [replace(query, seed=seed) for seed in (1, 2, 1)]
    first, other, again = Decoder(llama).generate(asked)
    assert first == again
    assert first.ids != other.ids


def test_an_answer_may_be_ended_by_what_it_says(llama: Llama) -> None:
    query = replace(queries(3)[0], max_new=50, stop=frozenset())
    (free,) = Decoder(llama).generate([query])
    (cut,) = Decoder(llama).generate([replace(query, ended=lambda ids: len(ids) == 7)])
    assert cut.ids == free.ids[:7]
    assert cut.stopped
    assert not free.stopped


def test_a_group_reads_its_prompt_once(llama: Llama) -> None:
    ids = tuple(range(50))
    decoder = Decoder(llama)
    decoder.generate([Query(ids, max_new=3, temperature=1.0, seed=seed) for seed in range(8)])
    assert decoder.read_tokens == 50
    decoder.generate([Query((*ids, 1, 2, 3), max_new=3)])
    assert decoder.read_tokens == 50 + 53 - 48
    decoder.forget()
    decoder.generate([Query(ids, max_new=1)])
    assert decoder.read_tokens == 50 + 5 + 50


def test_trained_weights_are_noticed(llama: Llama, tmp_path: Path) -> None:
    from dreamgym.models.load import load_llama

    llama.save(tmp_path)
    model = load_llama(tmp_path)
    decoder = Decoder(model)
    query = Query(tuple(range(60)), max_new=5)
    before = decoder.generate([query])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.tensor([query.ids])).square().sum().backward()
    optimizer.step()
    assert decoder.generate([query]) == Decoder(model).generate([query])
    assert decoder.generate([query]) != before


def test_answers_up_to_the_last_position(llama: Llama) -> None:
    long = tuple(n % 97 for n in range(250))
    answers = Decoder(llama).generate([Query(long, max_new=6), Query((1,), max_new=255)])
    assert [len(answer.ids) for answer in answers] == [6, 255]


def test_batches_keep_to_rows_and_room(llama: Llama) -> None:
    bytes_per_token = llama.cache_shape.bytes_per_token
    assert bytes_per_token == 512
    decoder = Decoder(llama, max_rows=3, cache_mb=1)  # 2048 tokens
    cut = decoder._batches
    assert list(cut([10] * 7)) == [(0, 3), (3, 6), (6, 7)]
    assert list(cut([900, 900, 100, 700, 700, 5000, 1])) == [(0, 2), (2, 4), (4, 5), (5, 6), (6, 7)]
    assert list(cut([])) == []


def test_impossible_queries_are_refused(llama: Llama) -> None:
    decoder = Decoder(llama)
    with pytest.raises(ConfigError, match="250 prompt tokens and 7 new ones are more than the 256"):
        decoder.generate([Query((1,) * 250, max_new=7)])
    with pytest.raises(ConfigError, match="without tokens"):
        decoder.generate([Query((), max_new=1)])
    with pytest.raises(ConfigError, match="max_new is 0"):
        decoder.generate([Query((1,), max_new=0)])
    assert decoder.generate([]) == []
