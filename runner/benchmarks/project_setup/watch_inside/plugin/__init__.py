"""On PYTHONPATH inside: the plugin, and beside it what makes pytest load it (`runner.benchmarks.project_setup.rerun.PLUGIN`)."""
