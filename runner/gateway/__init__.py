"""Between agents and model providers: the only way out of a sandbox, and the only accountant.

    agent → unix socket of the trial → http (key, body) → session (budget, ledger) → provider (retries) → litellm

One `Api` per wire format (`chat`, `responses`, `messages`) knows all that tells the formats apart; `scripted` stands
where a provider stands. An answer is collected, priced, written to the ledger and only then sent, as JSON or as events.
What litellm leaves out between an API and a provider is measured on what it sends (`bridge`) and named in the ledger.
"""

from runner.gateway.server import Gateway
from runner.gateway.session import Session, SessionSpec

__all__ = ["Gateway", "Session", "SessionSpec"]
