"""Sources that benchmarks share: packages by digest, git clones and files of tasks."""
