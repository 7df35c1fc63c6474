"""How an agent worked, read from its model calls and its ending: the same for every agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.records import Status


def kinds(names: Sequence[str], tools: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The kind of each tool call, in their order; a name that no kind has is `other`."""
    kind = {name: kind for kind, of in tools.items() for name in of}
    return tuple(kind.get(name, "other") for name in names)


def own_finish(status: Status, kinds: Sequence[str], tools: Mapping[str, Sequence[str]]) -> bool:
    """Whether the agent ended its work itself (section 4.3.3): it exited well and, where it has a tool to say that it
    is done, said so with it. An agent without one that stops to ask cannot be told from one that is done.
    """
    return status is Status.COMPLETED and (not tools.get("finish") or "finish" in kinds)
