"""The cost of model calls (AgentMeter section 3.2, eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def call_cost(  # noqa: PLR0913 - the eight symbols of eq. 2
    input_tokens: ArrayLike,
    cache_creation_tokens: ArrayLike,
    cache_hit_tokens: ArrayLike,
    output_tokens: ArrayLike,
    *,
    p_in: ArrayLike | None,
    p_out: ArrayLike | None,
    p_create: ArrayLike | None,
    p_hit: ArrayLike | None,
) -> Any:
    """Return the cost in USD, C = p_in·N + p_out·Y + p_create·A + p_hit·H with N = max(X − A − H, 0) (eq. 2).

    Counts are in tokens: X (all input, caches included), A, H and Y; rates are USD per token. Scalars and arrays
    broadcast together, and the result has their common shape. A rate of NaN or None was not published: C is then NaN
    unless the rate's count is 0. A count of NaN makes C NaN. Nothing is imputed.
    """
    import numpy as np  # noqa: PLC0415 - heavy, and only a run that spends needs it

    total, created, hit, output = (
        np.asarray(count, dtype=float)
        for count in (input_tokens, cache_creation_tokens, cache_hit_tokens, output_tokens)
    )
    fresh = np.maximum(total - created - hit, 0.0)
    cost = _part(fresh, p_in) + _part(output, p_out) + _part(created, p_create) + _part(hit, p_hit)
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
