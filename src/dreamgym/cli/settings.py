"""`dreamgym config`: every setting, what it is now and what it means."""

from __future__ import annotations

from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.display import table
from dreamgym.config import preset_names
from dreamgym.config.describe import describe


def config(
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
) -> None:
    """List every setting, its value and meaning."""
    resolved = options.resolve_config(preset, config, settings, {})
    rows = [(item.name, repr(item.value), item.meaning) for item in describe(resolved)]
    console = Console()
    table(console, "Settings", ("setting", "value", "meaning"), rows)
    console.print(f"Presets: {', '.join(preset_names())}")
