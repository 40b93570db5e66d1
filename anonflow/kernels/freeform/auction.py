"""An assignment of nearly least cost, by an auction: rows bid for columns, and prices rise (Bertsekas 1988)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit


def auction(costs: np.ndarray, slack: float, most: int, to: np.ndarray, price: np.ndarray) -> bool:
    """Assign each row a column of its own; the sum exceeds the least sum by at most n times the smallest bid.

    A row without a column takes the column of least cost plus price, also from another row, and raises its price by the
    difference to its second choice plus the smallest bid.

    Parameters
    ----------
    costs : numpy.ndarray, shape (n, n), float64
        Infinite where a row may not have a column.
    slack : float
        The smallest bid, as a share of the mean of the columns' least costs.
    most : int
        The most bids.
    to : numpy.ndarray, shape (n,), int64
        Written: the column of each row.
    price : numpy.ndarray, shape (n,), float64
        Written.

    Returns
    -------
    bool
        False if the auction did not finish: the bids did not suffice, or the mean of the columns' least costs is not above 0.

    Notes
    -----
    Bertsekas, Annals of Operations Research 14, 1988, one row at a time; prices begin at the columns' least costs. O(n) time for
    a bid.
    """
    n = len(costs)
    free = np.empty(n, np.int64)
    owner = np.full(n, -1, np.int64)
    for j in range(n):
        price[j] = -np.inf
    for i in range(n):
        # a stack with row 0 on top
        free[i] = n - 1 - i
        row = costs[i]
        for j in range(n):
            price[j] = max(price[j], -row[j])
    least = 0.0
    for j in range(n):
        least -= price[j]
    bid = slack * least / n
    # nothing costs anything, or a column has no edge: no bid would end the auction
    if not 0.0 < bid < np.inf:
        return False
    left = n
    bids = 0
    while left > 0:
        if bids == most:
            return False
        bids += 1
        i = free[left - 1]
        row = costs[i]
        best = np.inf
        second = np.inf
        at = 0
        for j in range(n):
            cost = row[j] + price[j]
            if cost < second:
                if cost < best:
                    second = best
                    best = cost
                    at = j
                else:
                    second = cost
        # without the smallest bid, two rows with two equal columns would outbid each other by nothing for ever
        price[at] += bid
        if second < np.inf:
            price[at] += second - best
        to[i] = at
        if owner[at] < 0:
            left -= 1
        else:  # the row that lost its column is the next to bid
            free[left - 1] = owner[at]
        owner[at] = i
    return True


auction_jit = jit(auction)
