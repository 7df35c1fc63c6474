"""Agents: pure functions from a task and an endpoint to one command. `cli`: any coding CLI; `bounds`: oracle, nop."""
