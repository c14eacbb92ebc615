"""Real environments: engines, the mappers that abstract their states, and the workers they run in."""
