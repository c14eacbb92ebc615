"""Learning: experience models from records, agents from experience."""
