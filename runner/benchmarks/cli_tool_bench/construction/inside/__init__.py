"""The part of the construction that runs in sandboxes: a library for generators, and the program that runs them."""
