"""The part of the construction that runs in sandboxes: a library for generators, and what drives them."""
