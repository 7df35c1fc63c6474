"""What a specification document must say of a package, and whether it does (NL2Repo-Bench, sections 3.1.2, 3.1.4)."""
