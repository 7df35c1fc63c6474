"""Jobs of NL2Repo-Bench."""
