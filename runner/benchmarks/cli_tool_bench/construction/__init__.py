"""Make tasks from human-written tools: the construction half of CLI-Tool-Bench (sections 2.1 and 2.2)."""
