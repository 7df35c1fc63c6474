"""Make tasks of NL2Repo-Bench from libraries (sections 3.1.1 to 3.1.4)."""
