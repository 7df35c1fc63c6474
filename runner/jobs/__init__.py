"""What the one door can do: one class a `job=`, each with `run(sweep) -> exit code`."""
