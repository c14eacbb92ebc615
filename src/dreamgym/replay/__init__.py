"""The experience replay buffer: stored transitions, their vectors, and the search over them."""
