"""The benchmarks, one package each; none imports another."""
