"""Jobs: what a command does, without what it shows. Settings and a run directory in, result out."""
