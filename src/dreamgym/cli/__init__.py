"""The command line. The only place that prints, and the only one that knows rich and typer."""
