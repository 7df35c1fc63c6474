"""The gateway between agents and model providers: a sandbox's only way to a model, and the only meter of its use.

    agent → unix socket of the trial → http (key, body) → session (budget, tries, ledger) → provider → litellm → wire

There is one `Api` per wire format (`chat`, `responses`, `messages`); `scripted` takes the place of a provider. An
answer is collected, priced, written to the ledger and only then sent, as JSON or as events. `bridge` compares what
litellm sends with what it was given, and names the differences in the ledger. Every request of litellm's passes through
`wire`, which counts it and can pass its answer on as a stream.
"""

from runner.gateway.server import Gateway
from runner.gateway.session import Session, SessionSpec

__all__ = ["Gateway", "Session", "SessionSpec"]
