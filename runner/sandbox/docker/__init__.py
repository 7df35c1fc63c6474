"""Sandboxes on a Docker Engine."""
