# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""cu_seqlens and chunk_indices of packed sequences: from what callers have to lists of ints.

Both may be a list, a tuple, a NumPy integer array or a MindSpore integer Tensor (whose values are
fetched from the device). A list made here is known as such, so that the stages of one call do not
check it again.
"""

import itertools
import reprlib

import mindspore as ms
import numpy as np

from .stage_table import CHUNK_INDICES, CU_SEQLENS

_INT64 = np.iinfo(np.int64)


class Bounds(list):
    """cu_seqlens as ints: starts at 0, does not decrease, two entries or more. Its own length and
    values stay as they are."""

    def chunk_counts(self, chunk_size):
        return [-(-(stop - start) // chunk_size) for start, stop in itertools.pairwise(self)]


class Pairs(list):
    """chunk_indices of ``bounds``, flat: every (sequence, chunk), sequence after sequence."""

    def __init__(self, bounds, chunk_size):
        counts = np.array(bounds.chunk_counts(chunk_size), np.int64)
        sequences = np.repeat(np.arange(len(counts)), counts)
        firsts = np.cumsum(counts) - counts
        chunks = np.arange(len(sequences)) - firsts[sequences]
        super().__init__(np.stack([sequences, chunks], 1).ravel().tolist())
        self.bounds = bounds


def read_bounds(checker, value, is_stretch=False):
    """cu_seqlens as Bounds; the last entry is compared with T when T is known. ``is_stretch``: two
    entries may bound any stretch of tokens."""
    if isinstance(value, Bounds):
        return value
    name = CU_SEQLENS.name
    numbers, shape = _integers(checker, name, value)
    if len(shape) != 1:
        checker.value_error(name, "one axis of N + 1 entries", f"shape {list(shape)}")
    if len(numbers) < 2:
        checker.value_error(name, "at least 2 entries", len(numbers))
    if is_stretch and len(numbers) == 2:
        if numbers[0] < 0:
            checker.value_error(name, "its first entry to be at least 0", numbers[0])
    elif numbers[0] != 0:
        checker.value_error(name, "its first entry to be 0", numbers[0])
    for at, (before, entry) in enumerate(itertools.pairwise(numbers), 1):
        if entry < before:
            checker.value_error(
                name, "entries that do not decrease", f"{entry} behind {before} (entry {at})"
            )
    return Bounds(numbers)


def read_pairs(checker, value, bounds, chunk_size):
    """chunk_indices as Pairs: made of ``bounds`` when ``value`` is None, else compared with it."""
    if isinstance(value, Pairs) and value.bounds is bounds:
        return value
    expected = Pairs(bounds, chunk_size)
    if value is None:
        return expected
    name = CHUNK_INDICES.name
    numbers, shape = _integers(checker, name, value)
    count = len(expected) // 2
    if len(shape) not in (1, 2) or (len(shape) == 2 and numbers and shape[1] != 2):
        checker.value_error(name, "shape [Nc, 2], or flat [2 * Nc]", f"shape {list(shape)}")
    if len(numbers) != len(expected):
        checker.value_error(
            name, f"{count} pairs (the chunks of cu_seqlens)", f"{len(numbers)} numbers"
        )
    if numbers != expected:
        at = next(
            i for i in range(count) if numbers[2 * i : 2 * i + 2] != expected[2 * i : 2 * i + 2]
        )
        got, want = (tuple(x[2 * at : 2 * at + 2]) for x in (numbers, expected))
        checker.value_error(name, f"{want} as pair {at}", got)
    return expected


def _integers(checker, name, value):
    """A flat list of ints, and the shape that they came in."""
    kinds = "a list, tuple, NumPy array or Tensor of integers"
    if isinstance(value, ms.Tensor):
        if value.dtype == ms.bfloat16:  # which NumPy does not have
            checker.type_error(name, kinds, "dtype bfloat16")
        value = value.asnumpy()
    elif isinstance(value, list | tuple):
        flat = list(itertools.chain.from_iterable(_row(entry) for entry in value))
        for entry in flat:
            if isinstance(entry, bool | np.bool_) or not isinstance(entry, int | np.integer):
                checker.type_error(
                    name, kinds, f"{type(entry).__name__} {reprlib.repr(entry)} in it"
                )
            if not _INT64.min <= entry <= _INT64.max:
                checker.value_error(name, "integers of 64 bits", reprlib.repr(entry))
        try:
            value = np.array(value, np.int64)
        except ValueError:
            checker.value_error(name, "entries of one length", reprlib.repr(value))
    elif not isinstance(value, np.ndarray):
        checker.type_error(name, kinds, type(value).__name__)
    if value.dtype.kind not in "iu":
        checker.type_error(name, kinds, f"dtype {value.dtype}")
    if value.dtype.kind == "u" and value.size and value.max() > _INT64.max:
        checker.value_error(name, "integers of 64 bits", value.max())
    return value.astype(np.int64).ravel().tolist(), value.shape


def _row(entry):
    is_row = isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim == 1)
    return entry if is_row else (entry,)
