"""Ways to run many trials."""
