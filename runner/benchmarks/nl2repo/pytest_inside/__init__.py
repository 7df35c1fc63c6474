"""Programs that run inside the sandbox of a hidden pytest suite: `launch` starts commands, `session` runs pytest."""
