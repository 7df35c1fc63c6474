"""What is in the pantry, and what it is worth."""

__version__ = "1.4.0"
