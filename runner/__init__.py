"""Assay: which coding agent, with which model, should we deploy, at what price, and how sure are we?"""

__version__ = "0.1.0"
