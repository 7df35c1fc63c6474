"""What runs inside the sandbox of a hidden pytest suite; only `launch` and `session` are copied there."""
