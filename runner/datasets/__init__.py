"""Benchmarks: what turns a folder or a published format into `Task` records.

Each module is one format and holds one class that satisfies `protocols.Dataset`; `conf/dataset/*.yaml` names it by
`_target_`. A task that cannot be run here is a record with `refused` set, never an exception and never left out.
"""
