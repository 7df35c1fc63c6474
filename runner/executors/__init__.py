"""Ways to run many trials: the desk of a sweep, and crews that work for it."""
