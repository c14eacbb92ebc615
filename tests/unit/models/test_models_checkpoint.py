"""Checkpoints: whole or not there, verified, the last few kept."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from dreamgym.errors import RunDirError
from dreamgym.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint


def saved(folder: Path, *steps: int) -> None:
    for step in steps:
        tensors = {"weight": torch.full((100,), float(step)), "step": torch.tensor(step)}
        save_checkpoint(folder, Checkpoint(step, tensors, {"note": f"at {step}", "list": [1.5]}))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_is_read_back(tmp_path: Path) -> None:
    saved(tmp_path, 5, 10)
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 10
    assert found.state == {"note": "at 10", "list": [1.5]}
    assert torch.equal(found.tensors["weight"], torch.full((100,), 10.0))
    assert int(found.tensors["step"]) == 10


def test_nothing_there(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    assert load_checkpoint(tmp_path / "missing") is None


def test_only_the_last_two_are_kept(tmp_path: Path) -> None:
    saved(tmp_path, 999, 1000, 10_000)
    names = [f"step-{step:09d}" for step in (1000, 10_000)]
    assert files(tmp_path) == sorted(f"{n}.{end}" for n in names for end in ("json", "safetensors"))


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "changed", "manifest", "half manifest"])
def test_a_damaged_one_is_passed_over_with_a_warning(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path, 5, 10)
    data, manifest = (tmp_path / f"step-000000010.{end}" for end in ("safetensors", "json"))
    content = bytearray(data.read_bytes())
    if damage == "cut":
        data.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        data.write_bytes(b"")
    elif damage == "gone":
        data.unlink()
    elif damage == "changed":
        content[-1] ^= 1
        data.write_bytes(content)
    elif damage == "manifest":
        manifest.write_text("[]")
    else:
        manifest.write_text(manifest.read_text()[:20])
    with caplog.at_level(logging.WARNING):
        found = load_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 5
    (record,) = caplog.records
    assert "step-000000010.json is damaged and passed over" in record.getMessage()


def test_when_all_are_damaged_a_person_decides(tmp_path: Path) -> None:
    saved(tmp_path, 5, 10)
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(b"")
    with pytest.raises(RunDirError, match="none of the 2 checkpoints .* can be read"):
        load_checkpoint(tmp_path)


def test_tensors_without_a_manifest_are_no_checkpoint(tmp_path: Path) -> None:
    """Killed between the two files: the one before counts, and the remains go away."""
    saved(tmp_path, 5, 10)
    (tmp_path / "step-000000010.json").unlink()
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 5
    saved(tmp_path, 20)
    assert not (tmp_path / "step-000000010.safetensors").exists()
