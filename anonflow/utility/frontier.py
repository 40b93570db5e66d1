"""The risk-utility frontier: the results that no other result beats in both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonflow.errors import ParameterError


def frontier(risks: Sequence[float], losses: Sequence[float]) -> np.ndarray:
    """Return the points for which no other point has at most their risk and loss, and less of one of the two.

    Parameters
    ----------
    risks, losses : sequence of float, length n
        Risk and loss, the less the better; a point with a NaN is on no frontier.

    Returns
    -------
    numpy.ndarray, shape (m,), int64
        Positions, by increasing risk (and so by decreasing loss); equal points are all included. O(n log n).

    Raises
    ------
    ParameterError
        If there are not as many risks as losses.
    """
    if len(risks) != len(losses):
        raise ParameterError("the frontier takes as many risks as losses")
    risk, loss = np.asarray(risks, np.float64), np.asarray(losses, np.float64)
    order = np.lexsort([loss, risk])
    order = order[~(np.isnan(risk) | np.isnan(loss))[order]]
    points: list[int] = []
    for at in order.tolist():
        beaten = points and (
            loss[at] > loss[points[-1]] or (loss[at] == loss[points[-1]] and risk[at] > risk[points[-1]])
        )
        if not beaten:
            points.append(at)
    return np.array(points, np.int64)
