"""Crews on the nodes of a Ray cluster, and their desk in the process that started the sweep.

`executor` is the configuration, `cluster` reaches Ray, `team` hires crews and watches them, `window` serves the
messages of one crew at the desk, `crew` is the actor on a node, `line` and `far_desk` are its connection to the desk.
"""
