"""TextWorldExpress, the default real environment: eight fast text games in one Java process."""
