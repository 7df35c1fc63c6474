"""Between agents and model providers: the only way out of a sandbox, and the only accountant.

    agent → unix socket of the trial → http (key, body) → session (budget, tries, ledger) → provider → litellm → wire

One `Api` per wire format (`chat`, `responses`, `messages`) knows all that tells the formats apart; `scripted` stands
where a provider stands. An answer is collected, priced, written to the ledger and only then sent, as JSON or as events.
What litellm leaves out between an API and a provider is measured on what it sends (`bridge`) and named in the ledger.
Each request that it makes of a provider passes our `wire`, which counts it and can hand its answer on as it comes.
"""

from runner.gateway.server import Gateway
from runner.gateway.session import Session, SessionSpec

__all__ = ["Gateway", "Session", "SessionSpec"]
