"""Folder on PYTHONPATH inside the sandbox, with the plugin and the metadata that makes pytest load it."""
