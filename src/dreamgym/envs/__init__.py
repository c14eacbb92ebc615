"""Real environments: engines, the mappers that abstract their states, the workers they run in."""
