"""The chaos server itself, looked at with a plain HTTP client."""

import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from dreamgym.errors import ConfigError
from dreamgym.llm import ChaosServer, Fault
from dreamgym.llm.chaos import TRANSPORT_FAULTS
from dreamgym.llm.chaos.faults import FaultPlan, fault_named


def post(server, body=None, path="completions", *, timeout=30.0, **settings):
    with httpx.Client(trust_env=False, timeout=timeout) as client:
        body = {"prompt": "one\ntwo", "max_tokens": 5} if body is None else body
        return client.post(f"{server.base_url}/{path}", json=body, **settings)


def test_it_answers_and_counts():
    with ChaosServer(lambda prompt: f"<{prompt}>") as server:
        said = post(server).json()
        chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
        said_in_chat = post(server, chat, "chat/completions").json()
    assert said["choices"][0]["text"] == "<one\ntwo>"
    assert said["usage"] == {"prompt_tokens": 2, "completion_tokens": 1}
    assert said_in_chat["choices"][0]["message"]["content"] == "<user: hi>"
    assert server.counts == {"requests": 2, "right": 2}
    assert len(server.payloads) == len(server.arrivals) == 2
    assert server.billed_tokens == 3 + 2 + 2


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault.RATE_LIMIT, 429),
        (Fault.RATE_LIMIT_SECONDS, 429),
        (Fault.RATE_LIMIT_DATE, 429),
        (Fault.SERVER_ERROR, 500),
        (Fault.UNAVAILABLE, 503),
        (Fault.BAD_REQUEST, 400),
    ],
)
def test_faults_with_a_status(fault, status):
    with ChaosServer(script=[fault]) as server:
        response = post(server)
    assert response.status_code == status
    asks = fault in (Fault.RATE_LIMIT_SECONDS, Fault.RATE_LIMIT_DATE)
    assert ("retry-after" in response.headers) == asks


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.HANG, httpx.ReadTimeout),
        (Fault.RESET, httpx.ReadError),
        (Fault.HANG_UP, httpx.RemoteProtocolError),
        (Fault.TRUNCATED, httpx.RemoteProtocolError),
        (Fault.TRUNCATED_CHUNKS, httpx.RemoteProtocolError),
    ],
)
def test_faults_of_the_connection(fault, error):
    with ChaosServer(script=[fault]) as server, pytest.raises(error):
        post(server, timeout=0.5 if fault is Fault.HANG else 30.0)
    assert server.counts[fault] == 1


@pytest.mark.parametrize(
    "fault",
    [Fault.CUT_JSON, Fault.GARBLED_JSON, Fault.WRONG_TYPE, Fault.EMPTY_BODY],
)
def test_faults_in_the_body(fault):
    with ChaosServer(script=[fault]) as server:
        response = post(server)
    assert response.status_code == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter|decode|Invalid"):
        response.json()


def test_faults_in_the_shape_and_the_content():
    faults = [Fault.WRONG_SHAPE, Fault.EMPTY_CHOICES, Fault.NO_TEXT, Fault.EMPTY_TEXT]
    with ChaosServer(script=faults) as server:
        shape, choices, null, empty = (post(server).json() for _ in faults)
    assert isinstance(shape, list)
    assert choices["choices"] == []
    assert null["choices"][0]["text"] is None
    assert empty["choices"][0]["text"] == ""


def test_requests_that_are_none_are_refused_and_the_key_is_asked_for():
    with ChaosServer(key="secret") as server:
        assert post(server).status_code == 401
        headers = {"authorization": "Bearer secret"}
        assert post(server, headers=headers).status_code == 200
        assert post(server, {"no": "prompt"}, headers=headers).status_code == 404
        assert post(server, path="embeddings", headers=headers).status_code == 404
    assert server.counts == {"requests": 4, "unauthorized": 1, "malformed": 2, "right": 1}


def test_faults_depend_on_the_prompt_and_not_on_the_order():
    def drawn(prompts):
        plan = FaultPlan(script=(), rate=0.5, kinds=TRANSPORT_FAULTS, seed=3)
        return {prompt: [plan.choose(prompt) for _ in range(4)] for prompt in prompts}

    names = [f"p{n}" for n in range(50)]
    forth, back = drawn(names), drawn(reversed(names))
    assert forth == back
    faults = [fault for draws in forth.values() for fault in draws]
    assert 0.35 < sum(fault is not None for fault in faults) / len(faults) < 0.65
    assert len(set(faults)) > 10


def test_an_answer_function_that_raises_is_a_broken_server():
    with ChaosServer(lambda prompt: {}[prompt]) as server:
        response = post(server)
    assert response.status_code == 500
    assert "KeyError" in response.text
    assert server.counts["answer_raised"] == 1


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="rate"):
        ChaosServer(rate=1.5)
    with pytest.raises(ConfigError, match="kinds"):
        ChaosServer(rate=0.5, kinds=[])
    with pytest.raises(ConfigError, match="Did you mean 'hang'"):
        fault_named("hangs")


def test_it_stops_with_clients_hanging_and_starts_again():
    server = ChaosServer(script=[Fault.HANG])

    def hang():
        with pytest.raises(httpx.HTTPError):
            post(server)

    with server:
        client = threading.Thread(target=hang)
        client.start()
        while not server.counts["hang"]:
            time.sleep(0.01)
    client.join(5)
    assert not client.is_alive()
    assert "chaos-server" not in [thread.name for thread in threading.enumerate()]
    with server:
        assert post(server).status_code == 200


def test_a_port_that_is_taken_is_said_at_once():
    with ChaosServer() as server, pytest.raises(OSError, match="address already in use"):
        ChaosServer(port=server.port).start()


def test_it_runs_from_the_shell():
    command = [sys.executable, "-m", "dreamgym.llm.chaos", "--port", "0", "--rate", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        url = process.stdout.readline().strip()
        said = httpx.post(
            f"{url}/completions", json={"prompt": "hi", "max_tokens": 3}, trust_env=False
        )
        assert said.json()["choices"][0]["text"] == "echo: hi"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
        assert output.strip() == "requests 1, right 1"
        assert errors == ""
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
