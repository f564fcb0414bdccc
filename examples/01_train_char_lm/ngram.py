# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Character n-gram models, the baselines: interpolated absolute discounting at orders 0, 1, 2, ...

An order-m model predicts a character c from the m characters h before it:

    p_m(c | h) = max(n(hc) - d_m, 0) / n(h) + d_m * kinds(h) / n(h) * p_{m-1}(c | h'),

where h' is h without its first character, and p_{-1} is uniform. The discounts d_m are chosen by
the loss on text that the counts have not seen.
"""

from __future__ import annotations

import numpy as np

_DISCOUNTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


class CountTable:
    """Counts of one length of context: n(hc), n(h) and the number of kinds of c seen after h."""

    def __init__(self, keys: np.ndarray, vocab_size: int):
        self.pair_keys, self.pair_counts = _count(keys)
        contexts = self.pair_keys // vocab_size
        self.context_keys, first, self.kinds = np.unique(
            contexts, return_index=True, return_counts=True
        )
        self.context_counts = np.add.reduceat(self.pair_counts, first)

    def lookup(self, keys: np.ndarray, vocab_size: int) -> tuple[np.ndarray, ...]:
        """(n(hc), n(h), kinds(h)) for each key hc; zeros where nothing was seen."""
        pairs = _find(self.pair_keys, self.pair_counts, keys)
        contexts = keys // vocab_size
        return (
            pairs,
            _find(self.context_keys, self.context_counts, contexts),
            _find(self.context_keys, self.kinds, contexts),
        )


def _count(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.unique with counts, without the sort where a table of all keys is small."""
    if keys.max() >= 1 << 22:
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys)
    seen = np.flatnonzero(counts)
    return seen, counts[seen]


def _find(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


def context_keys(
    text: np.ndarray, order: int, positions: np.ndarray, vocab_size: int
) -> np.ndarray:
    """One number for the characters text[p - order .. p] of each position p."""
    keys = np.zeros(len(positions), dtype=np.int64)
    for back in range(order, -1, -1):
        keys = keys * vocab_size + text[positions - back]
    return keys


class NgramModel:
    """All orders up to `max_order` in one object, since each order leans on those below."""

    def __init__(self, text: np.ndarray, max_order: int, vocab_size: int):
        if len(text) <= max_order:
            raise ValueError(
                f"text: expected more than {max_order} characters for order {max_order}, "
                f"got {len(text)}"
            )
        self.vocab_size = vocab_size
        self.max_order = max_order
        self.discounts = [0.5] * (max_order + 1)
        positions = np.arange(max_order, len(text))
        self._tables = [
            CountTable(context_keys(text, order, positions, vocab_size), vocab_size)
            for order in range(max_order + 1)
        ]

    def probabilities(self, text: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """[order, position]: probability of text[p] under every order."""
        if len(positions) and int(np.min(positions)) < self.max_order:
            raise ValueError(
                f"positions: expected at least {self.max_order} characters before each, "
                f"got a position {int(np.min(positions))}"
            )
        lower = np.full(len(positions), 1.0 / self.vocab_size)
        rows = []
        for order in range(self.max_order + 1):
            lower = self._interpolate(order, text, positions, lower, self.discounts[order])
            rows.append(lower)
        return np.stack(rows)

    def losses(self, text: np.ndarray, positions: np.ndarray) -> list[float]:
        """Mean negative log-likelihood in nats under every order."""
        return [float(x) for x in -np.log(self.probabilities(text, positions)).mean(axis=1)]

    def tune(self, text: np.ndarray) -> None:
        """Choose each order's discount by the loss on `text`, lowest order first."""
        positions = np.arange(self.max_order, len(text))
        lower = np.full(len(positions), 1.0 / self.vocab_size)
        for order in range(self.max_order + 1):
            tried = [
                self._interpolate(order, text, positions, lower, discount)
                for discount in _DISCOUNTS
            ]
            best = int(np.argmin([-np.log(p).mean() for p in tried]))
            self.discounts[order] = _DISCOUNTS[best]
            lower = tried[best]

    def _interpolate(self, order, text, positions, lower, discount):
        keys = context_keys(text, order, positions, self.vocab_size)
        pairs, totals, kinds = self._tables[order].lookup(keys, self.vocab_size)
        seen = np.maximum(totals, 1)
        mixed = np.maximum(pairs - discount, 0.0) / seen + discount * kinds / seen * lower
        return np.where(totals > 0, mixed, lower)


def fit_ngrams(train: np.ndarray, tuning_share: float, max_order: int, vocab_size: int):
    """Fit on the training text; the discounts come from its last share, counted on the rest."""
    cut = int(len(train) * (1.0 - tuning_share))
    trial = NgramModel(train[:cut], max_order, vocab_size)
    trial.tune(train[cut:])
    model = NgramModel(train, max_order, vocab_size)
    model.discounts = list(trial.discounts)
    return model
