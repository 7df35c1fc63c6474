"""Jobs of CLI-Tool-Bench."""
