"""Any Gymnasium environment that speaks text."""
