"""NL2Repo-Bench: repositories made from one document, graded by upstream's tests."""
