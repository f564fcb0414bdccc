# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bfloat16 in NumPy: rounding to nearest even, and bit views for buffers that carry bf16."""

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)


def round_bf16(x):
    """x rounded to bf16 (nearest even), returned as float32."""
    return np.asarray(x, np.float32).astype(BF16).astype(np.float32)


def to_bf16(x):
    """x as an array of ml_dtypes.bfloat16 (two bytes an element, C-contiguous)."""
    return np.ascontiguousarray(np.asarray(x, np.float32).astype(BF16))


def bf16_bits(x):
    """x rounded to bf16, as the uint16 patterns."""
    return to_bf16(x).view(np.uint16)


def bf16_from_bits(bits):
    """The float32 values of uint16 bf16 patterns."""
    return np.asarray(bits, np.uint16).view(BF16).astype(np.float32)


def split_bf16(x):
    """x as (hi, lo), both bf16 values in float32: hi + lo keeps about 16 bits of x."""
    x = np.asarray(x, np.float32)
    hi = round_bf16(x)
    return hi, round_bf16(x - hi)
