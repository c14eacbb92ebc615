"""Texts to vectors by an OpenAI-compatible endpoint: vLLM, llama.cpp, TEI or a hosted service.

The key comes from an environment variable and is never stored or shown. Busy or broken answers are
asked for again, more and more slowly; a wrong request fails at once with what the server said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx
import numpy as np

from dreamgym.errors import ConfigError, ReplayError
from dreamgym.protocols import Vectors
from dreamgym.replay.embed import unit_rows
from dreamgym.types import digest

KEY_VARIABLE = "DREAMGYM_EMBED_API_KEY"
"""Environment variable with the key; without it the endpoint is asked without one."""

_WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_PAUSE = 30.0


class HttpEmbedder:
    """Asks `POST {url}/embeddings`. The model may be part of the url: `https://host/v1?model=x`."""

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        key_variable: str = KEY_VARIABLE,
        batch: int = 64,
        tries: int = 6,
        time_limit: float = 60.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(f"'{url}' is no endpoint; write https://host/v1?model=name")
        asked = dict(parse_qsl(parts.query))
        path = parts.path.rstrip("/").removesuffix("/embeddings") + "/embeddings"
        self._url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        self._model = model or asked.get("model", "")
        self._size = int(asked["dimensions"]) if "dimensions" in asked else None
        self._batch, self._tries, self._pause = batch, tries, pause
        key = os.environ.get(key_variable)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(headers=headers, timeout=time_limit)
        self._dimensions = 0

    @property
    def digest(self) -> str:
        """Name the model; an endpoint that does not name one is known by its address."""
        return f"http-{self._model or digest(self._url)}-{self.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of a vector, learnt from the first answer."""
        if not self._dimensions:
            self._dimensions = len(self._ask(["dimensions"])[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        size = self.dimensions
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            rows += self._ask(texts[start : start + self._batch])
        for row in rows:
            if len(row) != size:
                raise ReplayError(f"{self._url}: a vector of {len(row)} numbers among {size}")
        vectors = np.array(rows, dtype=np.float64).reshape(len(texts), size)
        if not np.isfinite(vectors).all():
            raise ReplayError(f"{self._url}: a vector holds a number that is not finite")
        return unit_rows(vectors)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        body: dict[str, object] = {"input": list(texts)}
        if self._model:
            body["model"] = self._model
        if self._size is not None:
            body["dimensions"] = self._size
        answer = self._post(body)
        try:
            data = sorted(answer.json()["data"], key=lambda item: int(item["index"]))
            rows = [[float(number) for number in item["embedding"]] for item in data]
        except (KeyError, TypeError, ValueError) as error:
            said = answer.text[:200]
            raise ReplayError(f"{self._url}: not an embeddings answer: {said!r}") from error
        if len(rows) != len(texts):
            raise ReplayError(f"{self._url}: {len(rows)} vectors for {len(texts)} texts")
        return rows

    def _post(self, body: dict[str, object]) -> httpx.Response:
        last = ""
        for attempt in range(self._tries):
            wait = min(0.5 * 2.0**attempt, _LONGEST_PAUSE)
            try:
                answer = self._client.post(self._url, json=body)
            except httpx.TransportError as error:
                last = f"{type(error).__name__}: {error}"
            else:
                if answer.is_success:
                    return answer
                last = f"{answer.status_code}: {answer.text[:200]!r}"
                if answer.status_code not in _WORTH_ANOTHER_TRY:
                    raise ReplayError(f"{self._url} refused with {last}")
                wait = _asked_pause(answer, wait)
            if attempt + 1 < self._tries:
                self._pause(wait)
        raise ReplayError(f"{self._url} gave no answer in {self._tries} tries; last {last}")


def _asked_pause(answer: httpx.Response, otherwise: float) -> float:
    """Return how long the server wants us to wait, if it says so in seconds."""
    try:
        return min(float(answer.headers["retry-after"]), _LONGEST_PAUSE)
    except (KeyError, ValueError):
        return otherwise
