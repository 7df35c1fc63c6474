"""The supervisor of cases. It runs inside a side's container, on the `python` runtime bundle.

It imports nothing but the standard library and its own modules, and never executes anything with its privileges.
"""
