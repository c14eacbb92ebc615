"""The preset family: sizes, seeds, files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dreamgym.errors import ConfigError
from dreamgym.models.llama_files import read_config
from dreamgym.models.load import load_model
from dreamgym.models.tiny import PRESETS, make_tiny
from dreamgym.models.tokenizer import WordTokenizer


@pytest.mark.parametrize(("preset", "millions"), [("1m", 1.0), ("3m", 3.1), ("10m", 11.0)])
def test_presets_have_their_size(preset: str, millions: float) -> None:
    model = make_tiny(preset, 1024, seed=0)
    assert sum(w.numel() for w in model.parameters()) == pytest.approx(millions * 1e6, rel=0.03)
    assert model.shape.tied


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (make_tiny("1m", 300, seed=seed) for seed in (0, 0, 1))
    for one, same, different in zip(
        first.parameters(), again.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(one, same)
        assert one.dim() < 2 or not torch.equal(one, different)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_saved_preset_is_the_same_in_transformers(
    preset: str, words: WordTokenizer, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = make_tiny(preset, words.vocab_size, seed=0, positions=128)
    model.save(tmp_path)
    words.save(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(str(tmp_path))
    ids = torch.tensor([AutoTokenizer.from_pretrained(str(tmp_path)).encode("<act>take the coin")])
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, model(ids), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(load_model(tmp_path)(ids), model(ids), atol=0, rtol=0)
    assert theirs.config.eos_token_id == words.end_id
    assert theirs.config.pad_token_id == words.pad_id
    assert read_config(tmp_path)["max_position_embeddings"] == 128


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"no preset '2m'. Did you mean '10m'\?|Known: 10m, 1m, 3m"
    ):
        make_tiny("2m", 100, seed=0)
