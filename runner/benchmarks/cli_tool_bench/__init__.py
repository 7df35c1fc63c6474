"""CLI-Tool-Bench: command-line tools, judged by differential testing."""
