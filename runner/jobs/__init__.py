"""Jobs of the command line (`job=`) that know no benchmark: one class for each, whose `run` returns the exit code."""
