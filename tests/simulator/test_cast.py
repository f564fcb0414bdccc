# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Cast: every rounding mode by exact rational arithmetic, ties, infinities, NaN, denormals."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.device import DeviceError, address, image, lanes

BF16 = ml_dtypes.bfloat16
NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
NAMES = ["NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD"]
FIVE = [RINT, FLOOR, CEIL, ROUND, TRUNC]

# number in the test kernel: (destination, source, modes)
PAIRS = {
    0: (BF16, np.float32, FIVE),
    1: (np.float16, np.float32, [NONE, *FIVE, ODD]),
    2: (np.float32, BF16, [NONE]),
    3: (np.float32, np.float16, [NONE]),
    4: (np.int32, np.float32, FIVE),
    5: (np.int64, np.float32, FIVE),
    6: (np.float32, np.int32, [NONE, *FIVE]),
    7: (np.float32, np.int64, [RINT]),
    8: (np.int32, np.int64, [NONE]),
    9: (np.int64, np.int32, [NONE]),
    10: (np.float32, np.float32, FIVE),
    11: (np.int16, np.float32, FIVE),
    12: (np.int32, np.float16, FIVE),
    13: (np.float16, np.int16, [NONE, *FIVE]),
    14: (np.int32, BF16, FIVE),
    15: (np.float16, np.uint8, [NONE]),
    16: (np.uint8, np.float16, [NONE, *FIVE]),
}
# significant bits, least exponent of a unit, largest value
FORMATS = {
    np.dtype(BF16): (8, -133, float(ml_dtypes.finfo(BF16).max)),
    np.dtype(np.float16): (11, -24, 65504.0),
    np.dtype(np.float32): (24, -149, float(np.finfo(np.float32).max)),
}


def round_rational(x, mode):
    """An integer from a Fraction."""
    down = math.floor(x)
    if mode == FLOOR:
        return down
    if mode == CEIL:
        return math.ceil(x)
    if mode == TRUNC:
        return math.trunc(x)
    if mode == ROUND:  # half away from zero
        return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x)) if x else 0
    if mode == ODD:  # inexact results become odd
        return down if x == down else down if down % 2 else down + 1
    return round(x)  # half to even


def expected(value, to, mode):
    to = np.dtype(to)
    if to in FORMATS:
        if math.isnan(value) or math.isinf(value) or value == 0:
            return value
        digits, least, largest = FORMATS[to]
        x = Fraction(value)
        unit = Fraction(2) ** max(math.frexp(value)[1] - digits, least)
        result = round_rational(x / unit, mode) * unit
        if abs(result) > largest:
            return math.copysign(math.inf, value)
        return math.copysign(float(result), value)
    info = np.iinfo(to)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return info.max if value > 0 else info.min
    return min(max(round_rational(Fraction(value), mode), info.min), info.max)


def sample(source, to, rng):
    source = np.dtype(source)
    if source.kind in "iu":
        info = np.iinfo(source)
        edges = [0, 1, info.min, info.max, info.max - 1, 16777217 % (info.max + 1), 2049 % info.max]
        span = 2**40 if source.itemsize == 8 else info.max
        values = rng.integers(max(info.min, -span), span, 240, dtype=np.int64)
        return np.concatenate([np.array(edges), values]).astype(source)
    values = rng.standard_normal(400) * 10.0 ** rng.integers(-6, 7, 400)
    halves = np.arange(-20, 20) / 2 + 0.0
    near = np.concatenate([halves, halves * 64 + 2**-6, [0.0, -0.0, np.inf, -np.inf, np.nan]])
    # Ties and neighbours of the target format's numbers, its denormals, and overflow.
    grid = np.concatenate([1 + np.arange(16) * 2.0**-8, 1 + np.arange(16) * 2.0**-11])
    tiny = np.concatenate(
        [
            np.arange(1, 20) * 2.0**-25,
            np.arange(1, 20) * 2.0**-134,
            np.arange(1, 8) * 2.0**-149,
            2.0**-14 * (1 + np.arange(8) * 2.0**-11),
        ]
    )
    big = [
        65504,
        65519.9,
        65520,
        65536,
        3.3895e38,
        3.3961e38,
        3.4e38,
        2147483520,
        2147483648,
        -2147483648,
        2**62,
        2**63,
        32767.5,
        -32768.5,
        255.5,
        -0.5,
    ]
    everything = np.concatenate([values, near, grid, -grid, tiny, -tiny, big])
    with np.errstate(over="ignore"):
        out = everything.astype(np.float32)
        if np.dtype(to) == np.dtype(np.float32) and source == np.dtype(np.float32):
            out = out[np.abs(out) < 1e7]
        return out.astype(source)


@pytest.mark.parametrize(
    "number, mode",
    [(n, m) for n, (_, _, modes) in PAIRS.items() for m in modes],
    ids=[
        f"{np.dtype(s).name}-{np.dtype(d).name}-{NAMES[m]}"
        for d, s, modes in PAIRS.values()
        for m in modes
    ],
)
def test_rounding(device, number, mode):
    to, source, _ = PAIRS[number]
    x = sample(source, to, np.random.default_rng(number))
    out = image()
    device.run(
        "test_cast",
        [0, number, 0, x.size, 0, 0, 1, 1, 1, 1, 8, 8, 8, 0, mode],
        inputs=[image(x), image(), image()],
        out=out,
    )
    got = out.view(to)[: x.size]
    if number == 10:  # float to float rounds to integers
        want = np.array(
            [
                v if not np.isfinite(v) else float(round_rational(Fraction(float(v)), mode))
                for v in x
            ]
        )
    elif number == 8:
        want = np.clip(x, -(2**31), 2**31 - 1)
    elif np.dtype(source).kind in "iu" and np.dtype(to).kind in "iu":
        want = x
    else:
        exact = [int(v) if np.dtype(source).kind in "iu" else float(v) for v in x]
        want = np.array([expected_number(v, to, mode) for v in exact])
    if np.dtype(to).kind in "iu":
        np.testing.assert_array_equal(got.astype(np.int64), np.array(want, np.int64))
        return
    got = got.astype(np.float64)
    np.testing.assert_array_equal(got, np.array(want, np.float64))
    if number != 10:
        kept = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got[kept]), np.signbit(np.array(want)[kept]))


def expected_number(value, to, mode):
    if isinstance(value, int):
        if value == 0:
            return 0.0
        digits, least, _ = FORMATS[np.dtype(to)]
        unit = Fraction(2) ** max(value.bit_length() - digits, least)
        rounded = round_rational(Fraction(value) / unit, mode) * unit
        return float(rounded)
    return expected(value, to, mode)


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("number, d_rep, s_rep", [(0, 4, 8), (2, 8, 4), (0, 8, 16), (4, 8, 8)])
def test_masked_forms_and_strides(device, form, number, d_rep, s_rep):
    """The narrow operand packs 16 elements into a block, the wide one 8."""
    to, source, modes = PAIRS[number]
    rng = np.random.default_rng(5)
    x = rng.standard_normal(16384 // np.dtype(source).itemsize).astype(np.float32).astype(source)
    sizes = np.dtype(to).itemsize, np.dtype(source).itemsize
    mask_bits = (0xFFFF00FF0FF3F1F1, 0)
    out = image(fill=0x11)
    want = out.copy().view(to)
    for pair in lanes(4, form, 50, mask_bits, 3, widest=max(sizes)):
        value = x[address(pair, sizes[1], 1, s_rep)]
        want[address(pair, sizes[0], 1, d_rep)] = expected(float(value), to, modes[0])
    device.run(
        "test_cast",
        [0, number, form, 50, *mask_bits, 3, 1, 1, 1, d_rep, s_rep, 8, 0, modes[0]],
        inputs=[image(x), image(), image()],
        out=out,
    )
    np.testing.assert_array_equal(out, want.view(np.uint8))


@pytest.mark.parametrize("number, mode", [(0, NONE), (0, ODD), (2, RINT), (3, TRUNC), (8, RINT)])
def test_unsupported_modes_are_refused(device, number, mode):
    with pytest.raises(DeviceError, match=rf"Cast at vector.cpp:\d+: .* with CAST_{NAMES[mode]}"):
        device.run(
            "test_cast",
            [0, number, 0, 64, 0, 0, 1, 1, 1, 1, 8, 8, 8, 0, mode],
            inputs=[image(), image(), image()],
            out=image(),
        )
