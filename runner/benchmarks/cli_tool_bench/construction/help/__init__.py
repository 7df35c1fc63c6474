"""Ask a tool for its help pages, and read them without a model (section 2.2.1)."""
