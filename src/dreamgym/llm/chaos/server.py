"""A real HTTP server that speaks the OpenAI API and goes wrong on purpose. For tests.

It listens on the loopback interface in a thread of its own. Right answers come from a function;
which requests are spoilt, and how, is scripted or drawn from a seed. Everything is counted.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from types import TracebackType
from typing import Any, cast

from dreamgym.llm.chaos.faults import TRANSPORT_FAULTS, Fault, FaultPlan
from dreamgym.llm.prompt import flat_prompt
from dreamgym.types import Message

_HEAD_END = b"\r\n\r\n"
_DRIP_SECONDS = 0.05
_PAGE = b"<html><body><h1>Something is not right</h1></body></html>"
_NONSENSE = "zxq blort 17 ((("


def echo(prompt: str) -> str:
    """Answer with the last line of the prompt."""
    return f"echo: {prompt.splitlines()[-1] if prompt.strip() else ''}"


class ChaosServer:
    """An OpenAI-compatible server with faults. Use it in a `with` block.

    Args:
        answer: what to say to a prompt (a chat as one text, see `flat_prompt`).
        script: faults for the first requests, in order of arrival; None means a right answer.
        rate: the share of later requests that go wrong.
        kinds: what may go wrong with those; all transport faults unless told.
        seed: of the choice of faults.
        key: if given, requests without it are refused, and the refusal quotes what came instead.
        latency: seconds that every answer takes.
        port: where to listen; 0 means any free port.
    """

    def __init__(
        self,
        answer: Callable[[str], str] = echo,
        *,
        script: Sequence[Fault | None] = (),
        rate: float = 0.0,
        kinds: Sequence[Fault] = TRANSPORT_FAULTS,
        seed: int = 0,
        key: str = "",
        latency: float = 0.0,
        port: int = 0,
    ) -> None:
        self._answer = answer
        self._plan = FaultPlan(script=script, rate=rate, kinds=kinds, seed=seed)
        self._key = key
        self._latency = latency
        self.port = port
        self.counts: Counter[str] = Counter()
        """`requests`, `right`, `unauthorized`, `malformed`, `answer_raised`, and each fault."""
        self.payloads: list[dict[str, Any]] = []
        """Every request body, in order of arrival."""
        self.arrivals: list[float] = []
        """When each came, by `time.monotonic`."""
        self.billed_tokens = 0
        """Tokens of every answer that was made, also of those that never arrived."""
        self.at_once = 0
        """The most requests that were being answered at the same time."""
        self._now = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._problem: OSError | None = None

    @property
    def base_url(self) -> str:
        """Where the API starts."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> ChaosServer:
        """Start to listen."""
        self._ready.clear()
        self._thread = threading.Thread(target=self._run, name="chaos-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._problem
        return self

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._thread is not None and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> ChaosServer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = cast("asyncio.Task[None]", asyncio.current_task())
            connections.add(task)
            try:
                await self._converse(reader, writer)
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                pass  # The client went away; that is its right.
            except asyncio.CancelledError:
                pass  # The server stops; asyncio would report the cancellation as an error.
            finally:
                connections.discard(task)
                writer.transport.abort()

        try:
            server = await asyncio.start_server(connected, "127.0.0.1", self.port)
        except OSError as error:
            self._problem = error
            self._ready.set()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # asyncio forgets connections that it has accepted but not yet handed over when a server
        # is closed, and their clients would wait for ever. So: accept no more, let those in, close.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        await _settle()
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()
        await _settle()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        going = True
        while going:
            try:
                head = (await reader.readuntil(_HEAD_END)).decode("latin-1")
            except asyncio.IncompleteReadError:
                return
            request_line, *lines = head.split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self._now += 1
            self.at_once = max(self.at_once, self._now)
            try:
                going = await self._respond(request_line, headers, body, reader, writer)
            finally:
                self._now -= 1

    async def _respond(
        self,
        request_line: str,
        headers: Mapping[str, str],
        body: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Answer one request, rightly or wrongly; says whether the connection goes on."""
        verb, path = (*request_line.split(" "), "", "")[:2]
        if verb == "GET":
            await _send(writer, 200, _as_json({"object": "list", "data": [], "status": "ok"}))
            return True
        self.counts["requests"] += 1
        self.arrivals.append(time.monotonic())
        given = headers.get("authorization", "")
        if self._key and given != f"Bearer {self._key}":
            self.counts["unauthorized"] += 1
            await _send(writer, 401, _error(f"Incorrect API key provided: {given}"))
            return True
        asked = _read_request(path, body)
        if asked is None:
            self.counts["malformed"] += 1
            await _send(writer, 404, _error(f"no such endpoint or not a request: {verb} {path}"))
            return True
        payload, prompt = asked
        self.payloads.append(payload)
        fault = self._plan.choose(prompt)
        self.counts[fault or "right"] += 1
        if self._latency:
            await asyncio.sleep(self._latency)
        return await self._spoil(fault, payload, prompt, reader, writer)

    async def _spoil(
        self,
        fault: Fault | None,
        payload: Mapping[str, Any],
        prompt: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if fault in _STATUS_FAULTS:
            status, extra = _STATUS_FAULTS[fault]()
            page = _PAGE if status == 503 else _error(f"chaos: {fault}")
            await _send(writer, status, page, **extra)
            return True
        if fault is Fault.HANG:
            await reader.read()  # Returns when the client hangs up.
            return False
        if fault is Fault.RESET:
            _reset(writer)
            return False
        if fault is Fault.HANG_UP:
            return False
        text = {Fault.EMPTY_TEXT: "", Fault.NONSENSE: _NONSENSE}.get(fault) if fault else None
        try:
            reply = self._reply(payload, prompt, self._answer(prompt) if text is None else text)
        except Exception as error:  # noqa: BLE001 - whatever the user's function raises is a 500
            self.counts["answer_raised"] += 1
            await _send(writer, 500, _error(f"{type(error).__name__}: {error}"))
            return True
        if fault in _BODY_FAULTS:
            kind = "text/html" if fault is Fault.WRONG_TYPE else "application/json"
            await _send(writer, 200, _BODY_FAULTS[fault](reply), content_type=kind)
            return True
        return await _deliver(writer, _as_json(reply), fault)

    def _reply(self, payload: Mapping[str, Any], prompt: str, text: str) -> dict[str, Any]:
        most = payload.get("max_tokens", payload.get("max_completion_tokens", 16))
        words = text.split(" ") if text else []
        cut = len(words) > most
        text = " ".join(words[:most]) if cut else text
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": min(len(words), most)}
        self.billed_tokens += sum(usage.values())
        chat = "messages" in payload
        said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        choice = {"index": 0, **said, "finish_reason": "length" if cut else "stop"}
        return {"model": payload.get("model"), "choices": [choice], "usage": usage}


async def _settle() -> None:
    """Let everything that is ready to run do so, a few steps deep."""
    for _ in range(10):
        await asyncio.sleep(0)


def _read_request(path: str, body: bytes) -> tuple[dict[str, Any], str] | None:
    """Return a request's body and its prompt as one text, or None if it is not a request."""
    try:
        payload = json.loads(body)
        if path == "/v1/completions":
            return payload, str(payload["prompt"])
        if path == "/v1/chat/completions":
            chat = tuple(Message(item["role"], item["content"]) for item in payload["messages"])
            return payload, flat_prompt(chat)
    except (ValueError, KeyError, TypeError):
        pass
    return None


def _as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def _error(message: str) -> bytes:
    return _as_json({"error": {"message": message, "type": "chaos", "code": None}})


def _come_back_in_one_second() -> dict[str, str]:
    now = time.time()
    # Both from one reading of the clock, or the difference would now and then be zero.
    dates = {"date": now, "retry_after": now + 1}
    return {name: formatdate(moment, usegmt=True) for name, moment in dates.items()}


_STATUS_FAULTS: Mapping[Fault | None, Callable[[], tuple[int, dict[str, str]]]] = {
    Fault.RATE_LIMIT: lambda: (429, {}),
    Fault.RATE_LIMIT_SECONDS: lambda: (429, {"retry_after": "0.1"}),
    Fault.RATE_LIMIT_DATE: lambda: (429, _come_back_in_one_second()),
    Fault.SERVER_ERROR: lambda: (500, {}),
    Fault.UNAVAILABLE: lambda: (503, {"content_type": "text/html"}),
    Fault.BAD_REQUEST: lambda: (400, {}),
}

_BODY_FAULTS: Mapping[Fault | None, Callable[[dict[str, Any]], bytes]] = {
    Fault.CUT_JSON: lambda reply: _as_json(reply)[:-20],
    Fault.GARBLED_JSON: lambda reply: b"\x00\xff{" + _as_json(reply)[::-1],
    Fault.WRONG_TYPE: lambda reply: _PAGE,
    Fault.WRONG_SHAPE: lambda reply: _as_json([reply]),
    Fault.EMPTY_BODY: lambda reply: b"",
    Fault.EMPTY_CHOICES: lambda reply: _as_json({**reply, "choices": []}),
    Fault.NO_TEXT: lambda reply: _as_json(
        {**reply, "choices": [{"message": {"content": None}, "text": None}]}
    ),
}


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    **headers: str,
) -> None:
    usual = {"date": formatdate(usegmt=True), "content_type": "application/json"}
    fields = {**usual, "content_length": str(len(body)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} chaos", *lines])
    writer.write(head.encode() + _HEAD_END + body)
    await writer.drain()


async def _deliver(writer: asyncio.StreamWriter, body: bytes, fault: Fault | None) -> bool:
    """Send a right answer, whole or in a way that it does not arrive."""
    if fault is Fault.TRUNCATED_CHUNKS:
        half = body[: len(body) // 2]
        head = b"HTTP/1.1 200 chaos\r\ntransfer-encoding: chunked" + _HEAD_END
        writer.write(head + f"{len(half):x}\r\n".encode() + half + b"\r\n")
    elif fault is Fault.TRUNCATED:
        head = f"HTTP/1.1 200 chaos\r\ncontent-length: {len(body)}".encode() + _HEAD_END
        writer.write(head + body[: len(body) // 2])
    elif fault is Fault.DRIP:
        writer.write(f"HTTP/1.1 200 chaos\r\ncontent-length: {len(body)}".encode() + _HEAD_END)
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(_DRIP_SECONDS)
        return True
    else:
        await _send(writer, 200, body)
        return True
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    return False


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    # Lingering for zero seconds makes the kernel send a reset instead of a proper end.
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
