"""DreamGym: train language-model agents inside synthesised environments."""

__version__ = "0.1.0"
