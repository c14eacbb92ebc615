import random
from email.utils import formatdate

import pytest

from dreamgym.llm.limits import Limits
from dreamgym.llm.retry import asked_wait, backoff, is_transient


def test_backoff_doubles_up_to_its_cap_and_jitters_below_it():
    limits = Limits(backoff_seconds=0.5, backoff_cap=10)
    rng = random.Random(0)
    for retry, longest in enumerate([0.5, 1, 2, 4, 8, 10, 10]):
        waits = [backoff(retry, limits, rng) for _ in range(200)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_backoff_is_repeatable_and_survives_many_retries():
    limits = Limits()
    again = [backoff(5000, limits, random.Random(7)) for _ in range(2)]
    assert again[0] == again[1] <= limits.backoff_cap


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        (
            {
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
                "retry-after": "Wed, 21 Oct 2015 07:28:42 GMT",
            },
            42.0,
        ),
        (
            {
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
                "retry-after": "Wed, 21 Oct 2015 07:00:00 GMT",
            },
            0.0,
        ),
    ],
)
def test_the_wait_that_a_server_asks_for(headers, wait):
    assert asked_wait(headers) == wait


def test_a_date_without_the_servers_clock_is_measured_with_ours():
    ahead = asked_wait({"retry-after": formatdate(usegmt=True, timeval=None)})
    assert ahead == pytest.approx(0.0, abs=2.0)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_statuses_that_may_pass(status):
    assert is_transient(status)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_statuses_that_will_not(status):
    assert not is_transient(status)
