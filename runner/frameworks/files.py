"""Results of tests that frameworks write for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.environments import Outcomes


def read_file(framework: str, data: bytes) -> Outcomes | None:
    """What one file of this framework says (a file that `FILES` names); None: it says nothing that can be read."""
    raise NotImplementedError
