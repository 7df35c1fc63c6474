"""Sources that benchmarks share: packages by digest, clones, files of tasks."""
