"""The dream: a language model that plays the environment, and what keeps it honest."""
