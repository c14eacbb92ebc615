"""The HTTP embedder against a real server on the loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dreamgym.errors import ConfigError, ReplayError
from dreamgym.replay import open_store
from dreamgym.replay.embed_http import KEY_VARIABLE, HttpEmbedder


class Endpoint(ThreadingHTTPServer):
    """Answers with the lengths of texts, or with what a test queued up."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.queued: list[tuple[int, dict[str, str], object]] = []
        self.requests: list[tuple[str, str | None, dict]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((self.path, self.headers["authorization"], body))
        status, headers, content = 200, {}, vectors(body["input"])
        if self.server.queued:
            status, headers, content = self.server.queued.pop(0)
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_) -> None:
        pass


def vectors(texts):
    rows = [
        {"index": n, "embedding": [len(text), text.count("a"), 1.0]} for n, text in enumerate(texts)
    ]
    return {"data": rows[::-1]}


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def embedder(endpoint):
    made = HttpEmbedder(endpoint.url + "?model=tiny", batch=2, tries=4, pause=lambda _: None)
    yield made
    made.close()


def test_texts_go_in_batches_and_come_back_in_order(endpoint, embedder):
    rows = embedder.embed(["banana", "kiwi", "a"])
    assert embedder.dimensions == 3
    expected = np.array([[6, 3, 1], [4, 0, 1], [1, 1, 1]], dtype=float)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert rows == pytest.approx(expected, abs=1e-6)
    paths, keys, bodies = zip(*endpoint.requests, strict=True)
    assert set(paths) == {"/v1/embeddings"}
    assert set(keys) == {None}
    assert [len(body["input"]) for body in bodies[1:]] == [2, 1]
    assert {body["model"] for body in bodies} == {"tiny"}
    assert embedder.digest == "http-tiny-3"


def test_the_key_comes_from_the_environment(endpoint, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    embedder = HttpEmbedder(endpoint.url + "/embeddings?dimensions=3")
    embedder.embed(["x"])
    path, key, body = endpoint.requests[-1]
    assert (path, key, body["dimensions"]) == ("/v1/embeddings", "Bearer secret", 3)
    assert "secret" not in embedder.digest
    embedder.close()


def test_busy_servers_are_asked_again_as_slowly_as_they_like(endpoint):
    pauses = []
    embedder = HttpEmbedder(endpoint.url, tries=4, pause=pauses.append)
    assert embedder.dimensions == 3
    endpoint.queued = [(503, {}, b"busy"), (429, {"retry-after": "7"}, b"slow down")]
    assert embedder.embed(["abc"]).shape == (1, 3)
    assert pauses == [0.5, 7.0]
    endpoint.queued = [(500, {}, b"broken")] * 4
    with pytest.raises(ReplayError, match=r"no answer in 4 tries.*broken"):
        embedder.embed(["abc"])
    embedder.close()


def test_a_server_that_is_not_there(endpoint):
    embedder = HttpEmbedder("http://127.0.0.1:9/v1", tries=2, pause=lambda _: None)
    with pytest.raises(ReplayError, match="no answer in 2 tries"):
        embedder.embed(["abc"])
    embedder.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, {}, b"no such key"), "refused with 401.*no such key"),
        ((200, {}, b"<html>"), "not an embeddings answer"),
        ((200, {}, {"data": [{"index": 0}]}), "not an embeddings answer"),
        ((200, {}, {"data": []}), "0 vectors for 1 texts"),
        ((200, {}, {"data": [{"index": 0, "embedding": [1.0]}]}), "1 numbers among 3"),
        ((200, {}, b'{"data":[{"index":0,"embedding":[NaN,1,1]}]}'), "not finite"),
    ],
)
def test_wrong_answers_fail_at_once(endpoint, embedder, answer, message):
    assert embedder.dimensions == 3
    endpoint.queued = [answer]
    before = len(endpoint.requests)
    with pytest.raises(ReplayError, match=message):
        embedder.embed(["abc"])
    assert len(endpoint.requests) == before + 1


def test_a_store_works_with_it(endpoint, embedder, tmp_path, walk):
    with open_store(tmp_path / "experience.sqlite", embedder=embedder) as store:
        store.add([walk("t1", "hall", "attic"), walk("t2", "banana bar", "attic")])
        hit, _ = store.search("You are in the banana bar.", "go to attic", k=2)
        assert hit.transition.id == "t2#0"


def test_only_urls():
    with pytest.raises(ConfigError, match="no endpoint"):
        HttpEmbedder("host/v1")
