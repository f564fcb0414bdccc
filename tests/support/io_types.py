# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The types that q, k, v and the caches ("io") can have, with their rounding to nearest even."""

from dataclasses import dataclass

import numpy as np

from tests.support.bfloat16 import BF16


@dataclass(frozen=True)
class IoType:
    """One of them. Tests that run over both take `io` as a parameter, bfloat16 by default."""

    name: str
    dtype: np.dtype

    @property
    def is_half(self):
        return self.dtype == np.float16

    @property
    def epsilon(self):
        """The largest relative error of rounding a normal number."""
        return 2.0**-11 if self.is_half else 2.0**-8

    @property
    def tiny(self):
        """The largest absolute error of rounding a number below the normal ones."""
        return 2.0**-25 if self.is_half else 2.0**-134

    def array(self, x):
        """x rounded, in this dtype, C-contiguous."""
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(np.asarray(x, np.float32).astype(self.dtype))

    def round(self, x):
        """x rounded, as float32 (what is out of range becomes infinite)."""
        return self.array(x).astype(np.float32).reshape(np.shape(x))

    def split(self, x):
        """x as (hi, lo), both numbers of this type in float32."""
        x = np.asarray(x, np.float32)
        hi = self.round(x)
        return hi, self.round(x - hi)

    def __str__(self):
        return self.name


BFLOAT16 = IoType("bfloat16", BF16)
FLOAT16 = IoType("float16", np.dtype(np.float16))
IO_TYPES = (BFLOAT16, FLOAT16)
