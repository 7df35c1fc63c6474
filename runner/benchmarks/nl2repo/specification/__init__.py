"""Compare a specification document with the package that it describes (NL2Repo-Bench, sections 3.1.2 and 3.1.4)."""
