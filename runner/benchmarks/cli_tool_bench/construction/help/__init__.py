"""Ask a tool for its help pages, and read what they say without a model (section 2.2.1)."""
