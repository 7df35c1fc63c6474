"""The cost of model calls (AgentMeter section 3.2, eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class TokenCounts(NamedTuple):
    """Tokens of a call, or of each call of an array."""

    input: ArrayLike
    """X: all input, caches included."""
    cache_creation: ArrayLike
    """A: input that was written to a cache."""
    cache_hit: ArrayLike
    """H: input that was read from a cache."""
    output: ArrayLike
    """Y."""


class TokenRates(NamedTuple):
    """Rates in USD per token. NaN or None: the rate was not published."""

    p_in: ArrayLike | None
    """Rate of fresh input."""
    p_out: ArrayLike | None
    """Rate of output."""
    p_create: ArrayLike | None
    """Rate of input that is written to a cache."""
    p_hit: ArrayLike | None
    """Rate of input that is read from a cache."""


def call_cost(tokens: TokenCounts, rates: TokenRates) -> Any:
    """Return the cost in USD, C = p_in·N + p_out·Y + p_create·A + p_hit·H with N = max(X − A − H, 0) (eq. 2).

    Scalars and arrays broadcast together, and the result has their common shape. A missing rate makes C NaN unless the
    rate's count is 0. A count of NaN makes C NaN. Nothing is imputed.
    """
    import numpy as np  # noqa: PLC0415 - heavy, and only a run that spends needs it

    total, created, hit, output = (np.asarray(count, dtype=float) for count in tokens)
    counts = (np.maximum(total - created - hit, 0.0), output, created, hit)
    cost: Any = sum(_part(count, rate) for count, rate in zip(counts, rates, strict=True))
    return cost[()]  # an array of no dimension becomes a plain number


def price_tier(input_tokens: ArrayLike, above: Sequence[float]) -> Any:
    """Return the price tier of a call, or of each call of an array: 0 for the base rates, k for the k-th tier.

    Some providers charge more for long inputs. `above` has the tiers' bounds in tokens of X, ascending: all tokens of a
    call are charged at the rates of the last tier whose bound its X exceeds. The paper prices without tiers.
    """
    import numpy as np  # noqa: PLC0415 - as above

    return np.searchsorted(np.asarray(above, dtype=float), np.asarray(input_tokens, dtype=float), side="left")


def _part(count: NDArray[np.float64], rate: ArrayLike | None) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - as above

    return np.where(count == 0.0, 0.0, count * np.asarray(rate, dtype=float))
