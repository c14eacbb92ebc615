"""Environment specs: `family/name?param=value&param=value`, such as `twx/coin?numLocations=6`.

A spec is the one way to name an environment: on the command line, in a config, in every record.
Its canonical text has the parameters sorted, so equal environments have equal texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from dreamgym.errors import ConfigError, did_you_mean

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """An environment's family, its name inside the family, and its parameters as written."""

    family: str
    name: str
    params: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the canonical text."""
        place = f"{self.family}/{self.name}" if self.name else self.family
        query = "&".join(
            f"{key}={quote(value, safe='/.,:-')}" for key, value in sorted(self.params)
        )
        return f"{place}?{query}" if query else place


def parse_spec(text: str) -> EnvSpec:
    """Read a spec. Raises `ConfigError` for a text that is not one."""
    place, _, query = text.partition("?")
    family, _, name = place.partition("/")
    if not family:
        raise ConfigError(f"'{text}' names no environment; write family/name?param=value")
    try:
        params = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError as error:
        raise ConfigError(f"'{text}': parameters are written ?name=value&name=value") from error
    names = [key for key, _ in params]
    for key in names:
        if names.count(key) > 1:
            raise ConfigError(f"'{text}': parameter '{key}' is given twice")
    return EnvSpec(family, name, tuple(sorted(params)))


def read_params(spec: EnvSpec, defaults: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the defaults overridden by the spec's parameters, each as the default's type."""
    values = dict(defaults)
    for key, text in spec.params:
        if key not in defaults:
            raise ConfigError(f"{spec}: unknown parameter '{key}'.{did_you_mean(key, defaults)}")
        values[key] = _read(spec, key, text, defaults[key])
    return values


def _read(spec: EnvSpec, key: str, text: str, default: Scalar) -> Scalar:
    if isinstance(default, bool):
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if text.lower() not in words:
            raise ConfigError(f"{spec}: {key} is yes or no, not '{text}'")
        return words[text.lower()]
    try:
        return type(default)(text)
    except ValueError as error:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ConfigError(f"{spec}: {key} is {kind}, not '{text}'") from error
