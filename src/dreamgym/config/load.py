"""From files and `--set` to a config: defaults < presets and files, left to right < `--set`.

Unknown keys are errors that name the nearest known one. There is no interpolation, no inclusion and
no inheritance: what a file says is what it says.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from dreamgym.config.run import RunConfig
from dreamgym.errors import ConfigError, did_you_mean

C = TypeVar("C")


def load_config(
    *, preset: str | None = None, files: Sequence[Path] = (), settings: Sequence[str] = ()
) -> RunConfig:
    """Return the run's config. Raises `ConfigError` for anything that is not a known setting."""
    merged: dict[str, Any] = {}
    if preset is not None:
        _merge(merged, _read_preset(preset))
    for path in files:
        _merge(merged, _read_toml(path))
    for setting in settings:
        _merge(merged, _read_setting(setting))
    return _build(RunConfig, merged, place="")


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets that ship with the package."""
    folder = resources.files("dreamgym.config") / "presets"
    return tuple(sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".toml")))


def dump_toml(config: Any) -> str:
    """Return the whole config as TOML, every setting written out; `load_config` reads it back."""
    plain, tables = [], []
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            tables.append(f"[{item.name}]\n{dump_toml(value)}")
        else:
            plain.append(f"{item.name} = {_literal(value)}\n")
    return "\n".join(["".join(plain), *tables]) if tables else "".join(plain)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return repr(value)


def _read_preset(name: str) -> dict[str, Any]:
    if name not in preset_names():
        raise ConfigError(f"unknown preset '{name}'.{did_you_mean(name, preset_names())}")
    text = (resources.files("dreamgym.config") / "presets" / f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no config file at {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _read_setting(text: str) -> dict[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {text}: write it as section.name=value")
    parsed: Any
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value  # an unquoted word: paths and specs are easier to type without quotes
    for part in reversed(name.strip().split(".")):
        parsed = {part: parsed}
    return dict(parsed)


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def _build(kind: type[C], values: Mapping[str, Any], *, place: str) -> C:
    hints = get_type_hints(kind)
    for key in values:
        if key not in hints:
            raise ConfigError(f"unknown setting '{place}{key}'.{did_you_mean(key, hints)}")
    built: dict[str, Any] = {}
    for key, value in values.items():
        wanted = hints[key]
        if isinstance(wanted, type) and is_dataclass(wanted):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{place}{key} is a section: set {place}{key}.name=value")
            built[key] = _build(wanted, value, place=f"{place}{key}.")
        else:
            built[key] = _convert(f"{place}{key}", value, wanted)
    return kind(**built)


def _convert(name: str, value: object, wanted: type) -> object:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        raise ConfigError(f"{name} is {words[wanted]}, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name} is {value!r}; it must be a finite number")
    return value
