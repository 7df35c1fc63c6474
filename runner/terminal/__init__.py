"""Text for terminals: escaping of foreign text, and tables of any width."""
