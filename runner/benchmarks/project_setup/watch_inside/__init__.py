"""Programs that run inside the sandbox of a rerun.

They use the standard library only, on the runtime's own interpreter; the plugin runs on any Python.
"""

NO_SHELL = 127
"""Exit code of the watcher in an image without a shell."""
