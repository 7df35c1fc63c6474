"""Tasks in Harbor's format."""
