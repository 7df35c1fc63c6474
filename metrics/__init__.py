"""Metrics of coding agents: pure functions over one trials table, without I/O or imports from `runner`.

Missing values are NaN.
"""
