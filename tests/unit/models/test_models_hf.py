"""Other architectures of Hugging Face, and LoRA, behind the same interface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dreamgym.errors import ConfigError
from dreamgym.models.decode import Decoder, Query
from dreamgym.models.hf import HfModel, HfTokenizer, Lora, load_hf_model
from dreamgym.models.llama import Llama
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.samples import Sample
from dreamgym.models.scoring import Choice
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan
from dreamgym.models.tokenizer import WordTokenizer, plain_chat
from dreamgym.types import Message

SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
PROMPTS = [tuple((n * 5 + k * k) % 97 for k in range(n)) for n in (1, 7, 30, 30, 51)]


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of an architecture that our own module does not cover."""
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("qwen")
    config = AutoConfig.for_model("qwen2", **SIZES, layer_types=["full_attention"] * 2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
        for weight in model.parameters():
            torch.nn.init.normal_(weight.data, 0, 0.3)
    model.save_pretrained(str(folder))
    return folder


def test_other_architectures_go_through_transformers(
    qwen: Path, llama: Llama, tmp_path: Path
) -> None:
    assert isinstance(load_model(qwen), HfModel)
    llama.save(tmp_path)
    assert isinstance(load_model(tmp_path), Llama)


def test_cached_decoding_is_that_of_transformers(qwen: Path) -> None:
    model = load_model(qwen)
    queries = [Query(ids, max_new=12, stop=frozenset({1})) for ids in PROMPTS]
    decoder = Decoder(model)
    for _ in range(2):
        answers = decoder.generate(queries)
        for query, answer in zip(queries, answers, strict=True):
            whole = model.inner.generate(
                torch.tensor([query.ids]),
                attention_mask=torch.ones(1, len(query.ids), dtype=torch.long),
                max_new_tokens=12,
                do_sample=False,
            )
            assert answer.ids == tuple(whole[0, len(query.ids) :].tolist())


def test_candidates_are_scored_side_by_side(qwen: Path) -> None:
    model = load_model(qwen)
    (scores,) = Decoder(model).score([Choice(PROMPTS[2], ((1, 2, 3), (4,)))])
    with torch.no_grad():
        logprobs = torch.log_softmax(model(torch.tensor([[*PROMPTS[2], 1, 2, 3]]))[0], dim=-1)
    right = [float(logprobs[29 + n, token]) for n, token in enumerate((1, 2, 3))]
    assert scores[0] == pytest.approx(right, abs=1e-4)


def test_it_is_trained_and_saved_like_ours(qwen: Path, tmp_path: Path) -> None:
    model = load_hf_model(qwen)
    samples = [Sample((5, 6, 7, 8, 1), (0, 0, 1, 1, 1))] * 20
    plan = SftPlan(steps=10, tokens_per_step=50, eval_every=5, learning_rate=1e-2)
    result = fit(model, samples, plan=plan, held_out=samples[:2])
    assert result.curve[-1].loss < result.curve[0].loss
    model.save(tmp_path)
    again = load_model(tmp_path)
    ids = torch.tensor([[5, 6, 7]])
    torch.testing.assert_close(again(ids), model(ids))
    with pytest.raises(ConfigError, match="129 tokens, but the model reads 128"):
        model(torch.zeros(1, 129, dtype=torch.long))


def test_scores_that_are_bent_at_the_end_are_refused(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("granite", **SIZES, logits_scaling=7.0)
    AutoModelForCausalLM.from_config(config).save_pretrained(str(tmp_path))
    with pytest.raises(ConfigError, match="changes its scores after the last layer"):
        load_model(tmp_path)


def test_sliding_windows_are_refused(qwen: Path, tmp_path: Path) -> None:
    for file in qwen.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((qwen / "config.json").read_text())
    config |= {
        "layer_types": ["full_attention", "sliding_attention"],
        "use_sliding_window": True,
        "sliding_window": 16,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="only full attention is covered"):
        load_model(tmp_path)


def test_tokenizers_are_told_apart(words: WordTokenizer, tmp_path: Path) -> None:
    words.save(tmp_path)
    assert isinstance(load_tokenizer(tmp_path), WordTokenizer)
    with pytest.raises(ConfigError, match="holds no tokenizer"):
        load_tokenizer(tmp_path / "elsewhere")


def test_a_tokenizer_of_others(words: WordTokenizer, tmp_path: Path) -> None:
    words.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del settings["dreamgym"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    theirs = load_tokenizer(tmp_path)
    assert isinstance(theirs, HfTokenizer)
    text = "<act>take the coin"
    assert theirs.encode(text) == words.encode(text)
    assert theirs.decode(theirs.encode(text)) == text
    assert (theirs.vocab_size, theirs.pad_id, theirs.end_ids) == (words.vocab_size, 0, {1})
    chat = [Message("user", "go")]
    assert theirs.decode(theirs.prompt_ids(chat)) == plain_chat(chat)
    assert theirs.prompt_ids(text) == words.encode(text)
    theirs.save(tmp_path / "again")
    assert HfTokenizer(tmp_path / "again").encode(text) == words.encode(text)


def test_a_chat_template_is_used(words: WordTokenizer, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    words.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del settings["dreamgym"]
    template = (
        "{% for m in messages %}<obs>{{ m['role'] }} {{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<act>{% endif %}"
    )
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps(settings | {"chat_template": template})
    )
    theirs = HfTokenizer(tmp_path)
    ids = theirs.prompt_ids([Message("user", "go"), Message("assistant", "no")])
    assert theirs.decode(ids) == "<obs>user go<obs>assistant no<act>"


def test_the_token_that_opens_a_text_is_added_to_prompts_only(
    words: WordTokenizer, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer, processors

    words.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del settings["dreamgym"]
    settings |= {"bos_token": "<obs>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    fast = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    opening = ("<obs>", words.special_id("<obs>"))
    fast.post_processor = processors.TemplateProcessing("<obs> $A", special_tokens=[opening])
    fast.save(str(tmp_path / "tokenizer.json"))
    theirs = HfTokenizer(tmp_path)
    assert theirs.encode("the coin") == words.encode("the coin")
    assert theirs.prompt_ids("the coin") == words.encode("<obs>the coin")


def test_lora_trains_little_and_merges(qwen: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="adapters need the extra `lora`")
    model = load_model(qwen, lora=Lora(rank=2))
    assert isinstance(model, HfModel)
    trained = [n for n, weight in model.named_parameters() if weight.requires_grad]
    assert trained
    assert all("lora" in name for name in trained)
    samples = [Sample((5, 6, 7, 8, 1), (0, 0, 1, 1, 1))] * 20
    plan = SftPlan(steps=10, tokens_per_step=50, eval_every=5, learning_rate=1e-2)
    result = fit(model, samples, plan=plan, held_out=samples[:2], folder=tmp_path / "run")
    assert result.curve[-1].loss < result.curve[0].loss
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        scores = model(ids)
        model.save(tmp_path / "saved")
        torch.testing.assert_close(model(ids), scores, atol=0, rtol=0)  # saving changes nothing
        again = load_model(tmp_path / "saved" / "adapters")
        torch.testing.assert_close(again(ids), scores)
        for whole in (load_model(tmp_path / "saved"), model.merged()):
            torch.testing.assert_close(whole(ids), scores, atol=1e-4, rtol=1e-4)
