"""What runs inside the sandbox of a rerun.

Standard library only, on the runtime's own interpreter; the plugin on any Python.
"""

NO_SHELL = 127
"""The watcher's exit code where nothing can run a script."""
