"""Jobs that set up a project."""
