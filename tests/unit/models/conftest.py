"""Small models for tests: random, but with opinions strong enough that answers differ."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="local models need the extra `train`")

from dreamgym.models.llama import Llama  # noqa: E402
from dreamgym.models.llama_files import LlamaShape  # noqa: E402
from dreamgym.models.tokenizer import WordTokenizer, train_word_tokenizer  # noqa: E402

VOCAB = 97


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_llama(seed: int = 0, **sizes: object) -> Llama:
    shape = {"vocab_size": VOCAB, "hidden": 32, "layers": 2, "heads": 4, "inner": 64}
    model = Llama(LlamaShape(**{**shape, "positions": 256, **sizes}))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3, generator=generator)
    return model.eval()


@pytest.fixture(scope="session")
def llama() -> Llama:
    return random_llama()


@pytest.fixture(scope="session")
def grouped_llama() -> Llama:
    """Four query heads over two heads of keys and values."""
    return random_llama(1, kv_heads=2, tied=False)


@pytest.fixture(scope="session")
def words() -> WordTokenizer:
    texts = ["<act>take the coin from the T-shirt (red), then go north.\nYou see: a box."] * 2
    return train_word_tokenizer(texts, special=("<act>", "<obs>"))
