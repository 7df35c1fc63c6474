"""Judges of final workspaces: one module a kind of task."""
