import asyncio
import json
import random

import pytest

from dreamgym.errors import ConfigError, LLMBudget, RecordError
from dreamgym.llm.spend import Price, Spend
from dreamgym.types import Usage

PRICE = Price(prompt=1.0, completion=2.0)
"""In a currency of which a call of half a million tokens each way costs 1.5."""


def use(spend, usage, *, price=PRICE, most=None):
    async def main():
        with await spend.reserve(most or usage, price=price) as reservation:
            reservation.settle(usage)

    asyncio.run(main())


def test_cost_and_tokens_add_up():
    spend = Spend()
    use(spend, Usage(1_000_000, 500_000))
    use(spend, Usage(1_000_000, 0), price=Price(10.0, 0.0))
    assert spend.cost == pytest.approx(12.0)
    assert spend.tokens == 2_500_000
    assert spend.metrics() == {
        "llm/cost": 12.0,
        "llm/billed_calls": 2.0,
        "llm/unsure_calls": 0.0,
        "llm/prompt_tokens": 2_000_000.0,
        "llm/completion_tokens": 500_000.0,
    }


def test_a_call_that_might_pass_the_ceiling_is_not_made():
    spend = Spend(ceiling=2.0)
    use(spend, Usage(500_000, 500_000))
    with pytest.raises(LLMBudget, match=r"spent 1.5 of the ceiling of 2; .* up to 0.6"):
        use(spend, Usage(1, 1), most=Usage(200_000, 200_000))
    use(spend, Usage(500_000, 0))
    assert spend.cost == 2.0


def test_a_ceiling_in_tokens_works_without_prices():
    spend = Spend(token_ceiling=100)
    use(spend, Usage(50, 10), price=Price())
    with pytest.raises(LLMBudget, match="used 60 of the ceiling of 100 tokens"):
        use(spend, Usage(1, 1), most=Usage(30, 11), price=Price())


def test_a_bill_that_never_came_counts_in_full():
    spend = Spend()

    async def main():
        with await spend.reserve(Usage(100, 100), price=PRICE):
            pass
        with (
            pytest.raises(RuntimeError),
            await spend.reserve(Usage(10, 10), price=PRICE),
        ):
            raise RuntimeError

    asyncio.run(main())
    assert spend.tokens == 220
    assert spend.metrics()["llm/unsure_calls"] == 2


def test_a_request_that_was_not_taken_costs_nothing():
    spend = Spend()

    async def main():
        with await spend.reserve(Usage(100, 100), price=PRICE) as reservation:
            reservation.release()

    asyncio.run(main())
    assert spend.cost == 0
    assert spend.metrics()["llm/billed_calls"] == 0


def test_calls_wait_for_those_under_way_instead_of_being_refused():
    spend = Spend(token_ceiling=100)
    order = []

    async def one(name, seconds):
        with await spend.reserve(Usage(60, 0), price=PRICE) as reservation:
            order.append(name)
            await asyncio.sleep(seconds)
            reservation.settle(Usage(10, 0))

    async def main():
        await asyncio.gather(one("a", 0.01), one("b", 0), one("c", 0))

    asyncio.run(main())
    assert order == ["a", "b", "c"]
    assert spend.tokens == 30


def test_those_who_wait_in_vain_are_told():
    spend = Spend(token_ceiling=100)

    async def one(used):
        with await spend.reserve(Usage(60, 0), price=PRICE) as reservation:
            await asyncio.sleep(0)
            reservation.settle(Usage(used, 0))

    async def main():
        return await asyncio.gather(one(60), one(60), one(60), return_exceptions=True)

    ends = asyncio.run(main())
    assert [type(end) for end in ends] == [type(None), LLMBudget, LLMBudget]


@pytest.mark.parametrize("seed", range(5))
def test_the_ceiling_is_never_passed_under_concurrency(seed):
    rng = random.Random(seed)
    spend = Spend(ceiling=0.01)
    highest = 0.0

    async def one():
        nonlocal highest
        most = Usage(rng.randint(1, 500), rng.randint(1, 300))
        with await spend.reserve(most, price=PRICE) as reservation:
            await asyncio.sleep(rng.random() * 0.002)
            match rng.randint(0, 3):
                case 0:
                    reservation.release()
                case 1:
                    pass
                case _:
                    reservation.settle(
                        Usage(rng.randint(0, most.prompt_tokens), most.completion_tokens)
                    )
        highest = max(highest, spend.cost)

    async def main():
        return await asyncio.gather(*(one() for _ in range(120)), return_exceptions=True)

    ends = asyncio.run(main())
    assert highest <= 0.01
    assert spend.cost > 0.008
    assert {type(end) for end in ends} == {type(None), LLMBudget}


def test_a_cancelled_waiter_blocks_nobody():
    spend = Spend(token_ceiling=100)

    async def main():
        held = await spend.reserve(Usage(90, 0), price=PRICE)
        waiting = asyncio.create_task(spend.reserve(Usage(50, 0), price=PRICE))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        held.release()
        with await spend.reserve(Usage(100, 0), price=PRICE) as reservation:
            reservation.release()

    asyncio.run(asyncio.wait_for(main(), 2))


def test_the_state_goes_through_json_and_back():
    first = Spend()
    use(first, Usage(10, 5))
    use(first, Usage(7, 1), price=Price(0.15, 0.6))
    second = Spend()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.state_dict() == first.state_dict()
    assert second.metrics() == first.metrics()


def test_totals_do_not_depend_on_the_order_of_calls():
    usages = [Usage(n * 37 % 101, n * 91 % 77) for n in range(60)]
    forth, back = Spend(), Spend()
    for usage in usages:
        use(forth, usage, price=Price(0.1, 0.7))
    for usage in reversed(usages):
        use(back, usage, price=Price(0.1, 0.7))
    assert forth.state_dict() == back.state_dict()
    assert forth.cost == back.cost


def test_a_ledger_keeps_a_killed_run_from_spending_twice(tmp_path):
    path = tmp_path / "run" / "spend.jsonl"
    use(Spend(ceiling=2.0, ledger=path), Usage(500_000, 500_000))
    again = Spend(ceiling=2.0, ledger=path)
    assert again.cost == 1.5
    with pytest.raises(LLMBudget):
        use(again, Usage(1_000_000, 0))
    again.load_state_dict(Spend().state_dict())
    assert again.cost == 1.5


def test_half_a_line_in_a_ledger_is_dropped_and_the_rest_kept(tmp_path):
    path = tmp_path / "spend.jsonl"
    use(Spend(ledger=path), Usage(10, 0))
    with path.open("a") as file:
        file.write("[1.0, 2.0, 9")
    again = Spend(ledger=path)
    use(again, Usage(5, 0))
    assert Spend(ledger=path).tokens == again.tokens == 15


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "spend.jsonl"
    path.write_text("hello\n")
    with pytest.raises(RecordError, match="not a ledger"):
        Spend(ledger=path)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_strange_prices_are_refused(wrong):
    with pytest.raises(ConfigError):
        Price(prompt=wrong)


def test_strange_ceilings_are_refused():
    with pytest.raises(ConfigError, match="ceiling"):
        Spend(ceiling=-1.0)
    with pytest.raises(ConfigError, match="ceiling"):
        Spend(ceiling=float("nan"))
