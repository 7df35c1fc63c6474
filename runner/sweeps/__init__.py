"""One sweep: its cells, its plan, its store, and the executor that runs the trials."""
