"""Records in and out: the formats that trajectories are imported from and exported to."""
