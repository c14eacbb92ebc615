"""TextWorld: generated text games by seed and difficulty, compiled once and kept on disk."""
