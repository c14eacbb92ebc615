"""Checkpoints that survive anything: whole or not there, verified on reading, the last few kept.

A checkpoint is two files: tensors, then a small JSON file with everything else and the tensors'
digest. It exists once the second is there. What the tensors mean is up to the caller.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamgym.errors import RunDirError
from dreamgym.files import write_atomically
from dreamgym.models.requirement import torch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was saved at a step."""

    step: int
    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]
    """Numbers, texts, lists: anything that JSON holds."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, keep: int = 2) -> None:
    """Write a checkpoint; then drop all but the newest `keep`."""
    from safetensors.torch import save

    data = save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()})
    name = f"step-{checkpoint.step:09d}"
    content = {
        "step": checkpoint.step,
        "digest": _digest(data),
        "bytes": len(data),
        "state": checkpoint.state,
    }
    write_atomically(folder / f"{name}.safetensors", data)
    write_atomically(folder / f"{name}.json", json.dumps(content))
    for old in sorted(folder.glob("step-*.json"))[:-keep]:
        old.unlink()
    kept = {path.stem for path in folder.glob("step-*.json")}
    for data_file in folder.glob("step-*.safetensors"):
        if data_file.stem not in kept:
            data_file.unlink()


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """Read the newest whole checkpoint of a folder, or None where there never was one.

    A damaged one is passed over with a warning. Raises `RunDirError` if all are damaged: going back
    to the beginning is not for a program to decide.
    """
    manifests = sorted(folder.glob("step-*.json"), reverse=True)
    for manifest in manifests:
        try:
            return _read(manifest)
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("checkpoint %s is damaged and passed over: %s", manifest, error)
    if manifests:
        raise RunDirError(
            f"none of the {len(manifests)} checkpoints in {folder} can be read. "
            "Remove the folder to begin anew."
        )
    return None


def _read(manifest: Path) -> Checkpoint:
    from safetensors.torch import load

    content = json.loads(manifest.read_text(encoding="utf-8"))
    data = manifest.with_suffix(".safetensors").read_bytes()
    if len(data) != content["bytes"]:
        raise ValueError(f"{len(data)} bytes of {content['bytes']}")
    if _digest(data) != content["digest"]:
        raise ValueError("its content is not what was written")
    return Checkpoint(content["step"], load(data), content["state"])


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
