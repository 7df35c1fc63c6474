"""Metrics of coding agents: pure functions over one trials table. No I/O, nothing of `runner`, missing is NaN."""
