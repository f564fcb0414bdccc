# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""NumPy's BLAS: its thread count and the float32 matmul rate it reaches on this machine."""

import ctypes
import time
from pathlib import Path

import numpy as np


def set_threads(count):
    """Sets the threads of the OpenBLAS inside NumPy's wheel; RuntimeError for another BLAS."""
    folder = Path(np.__file__).resolve().parent.parent / "numpy.libs"
    for path in sorted(folder.glob("*openblas*")):
        library = ctypes.CDLL(str(path))
        for name in ("openblas_set_num_threads64_", "openblas_set_num_threads"):
            if hasattr(library, name):
                getattr(library, name)(count)
                return
    raise RuntimeError(f"no OpenBLAS in {folder}: set its thread count by an environment variable")


def best_time(function, repeats, budget=10.0, clock=time.perf_counter):
    """Shortest of up to `repeats` timed calls after one warm-up, in seconds of `clock`."""
    function()
    best, start = float("inf"), time.perf_counter()
    for _ in range(repeats):
        before = clock()
        function()
        best = min(best, clock() - before)
        if time.perf_counter() - start > budget:
            break
    return best


def sgemm_peak(size=1024, repeats=20, clock=time.perf_counter):
    """FLOP/s of a square float32 product with the current thread count."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    out = np.empty_like(a)
    return 2 * size**3 / best_time(lambda: np.matmul(a, b, out=out), repeats, clock=clock)
