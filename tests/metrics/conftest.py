"""What every law of the metrics is tried under."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)  # an example that waits for a busy machine breaks no law
settings.load_profile("patient")
