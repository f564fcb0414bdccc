# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Runs a stage the ways every stage must bear: any core and thread count, with its counters."""

import numpy as np
import pytest

from tests.support.io_types import BFLOAT16, IO_TYPES
from tests.support.metrics import apart

IO = pytest.mark.parametrize("io", IO_TYPES, ids=str)
TOKENS = (1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 200)
CORES = (1, 3, 20, 24)


def limits(measured, io):
    """Limits of results whose error is that of rounding to io, from those for bfloat16: float16
    keeps three more bits."""
    return {name: limit * io.epsilon / BFLOAT16.epsilon for name, limit in measured.items()}


def assert_rounded_alike(got, want, names, io, limit):
    """The same numbers but for the order of sums: now and then one of them falls to the other side
    of a rounding step. 3,000 draws: up to 3 % of the numbers of a tensor, once 7 % of w, where an
    element of Akk moves a row; of a tensor that is merely as accurate as rounding, 20 to 45 %. The
    others were off by up to 9e-5 in bfloat16 and 3e-5 in float16, relative L2."""
    for name in names:
        share, rest = apart(got.f32(name), want[name], io, 2 * io.tiny)
        print(f"{name}: {100 * share:.2f} % a step away, the rest {rest:.1e}")
        assert share < 0.15 and rest < limit, (name, share, rest)


def counted(lib, op_type, **arguments):
    """(results, this launch's counters)."""
    lib.reset_counters()
    results = lib.call(op_type, **arguments)
    (counters,) = lib.counters().values()
    return results, counters


def bits(results):
    return {name: array.tobytes() for name, array in results.items() if array is not None}


def assert_same_bits(lib, op_type, **arguments):
    """The same bits for every core and thread count."""
    want = bits(lib.call(op_type, **arguments))
    for cores in CORES:
        for threads in (1, 2):
            with lib.cores(cores), lib.threads(threads):
                got = bits(lib.call(op_type, **arguments))
            for name in want:
                assert got[name] == want[name], (
                    f"{name} differs on {cores} cores, {threads} threads"
                )


def mean_repeats(counters):
    return counters["vector_repeats"] / max(counters["vector_instructions"], 1)


def assert_contained(want, got, spoiled):
    """NaN put into `spoiled` = (batch, head) changed nothing anywhere else. Axes 0 and 1 of both
    arrays are batch (or sequence) and head."""
    keep = np.ones(want.shape[:2], bool)
    keep[spoiled] = False
    same = want[keep].tobytes() == got[keep].tobytes()
    assert same, f"a NaN in batch, head {spoiled} reached another one"
