"""Import the tasks of CLI-Tool-Bench's authors: their generators, prompts, masks and references."""
