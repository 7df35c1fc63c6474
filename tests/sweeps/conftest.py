"""Fixtures that tests of sweeps share with those of the gateway."""

from __future__ import annotations

from tests.gateway.conftest import gateway

__all__ = ["gateway"]
