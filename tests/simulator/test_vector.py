# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Vector arithmetic against the documented formulas, over forms, masks, strides and types."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.device import address, bits, image, lanes

TYPES = [np.float32, np.float16, np.int32, np.int16, np.uint16]
FLOATS, SIGNED, SHORTS = TYPES[:2], TYPES[:4], TYPES[4:]
F32, F16 = TYPES[:2]


def wide(x):
    return x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64)


# name: (number, operands, formula on float64 or int64 (a, b, d, scalar), types, relative bound)
OPS = {
    "Add": (0, 2, lambda a, b, d, s: a + b, SIGNED),
    "Sub": (1, 2, lambda a, b, d, s: a - b, SIGNED),
    "Mul": (2, 2, lambda a, b, d, s: a * b, SIGNED),
    "Max": (3, 2, lambda a, b, d, s: np.maximum(a, b), SIGNED),
    "Min": (4, 2, lambda a, b, d, s: np.minimum(a, b), SIGNED),
    "Adds": (5, 1, lambda a, b, d, s: a + s, SIGNED),
    "Muls": (6, 1, lambda a, b, d, s: a * s, SIGNED),
    "Maxs": (7, 1, lambda a, b, d, s: np.maximum(a, s), SIGNED),
    "Mins": (8, 1, lambda a, b, d, s: np.minimum(a, s), SIGNED),
    "Div": (20, 2, lambda a, b, d, s: a / b, FLOATS),
    "AddRelu": (21, 2, lambda a, b, d, s: np.maximum(a + b, 0), FLOATS),
    "SubRelu": (22, 2, lambda a, b, d, s: np.maximum(a - b, 0), FLOATS),
    "FusedMulAdd": (23, 2, lambda a, b, d, s: a * d + b, FLOATS),
    "FusedMulAddRelu": (24, 2, lambda a, b, d, s: np.maximum(a * d + b, 0), FLOATS),
    "MulAddDst": (25, 2, lambda a, b, d, s: a * b + d, FLOATS),
    "Exp": (30, 1, lambda a, b, d, s: np.exp(a), FLOATS),
    "Ln": (31, 1, lambda a, b, d, s: np.log(np.abs(a) + 0), FLOATS),
    "Abs": (32, 1, lambda a, b, d, s: np.abs(a), FLOATS),
    "Sqrt": (33, 1, lambda a, b, d, s: np.sqrt(a), FLOATS),
    "Rsqrt": (34, 1, lambda a, b, d, s: 1 / np.sqrt(a), FLOATS),
    "Reciprocal": (35, 1, lambda a, b, d, s: 1 / a, FLOATS),
    "Relu": (36, 1, lambda a, b, d, s: np.maximum(a, 0), FLOATS),
    "LeakyRelu": (40, 1, lambda a, b, d, s: np.where(a >= 0, a, a * s), FLOATS),
    "Axpy": (41, 1, lambda a, b, d, s: a * s + d, FLOATS),
    "ShiftLeft": (50, 1, lambda a, b, d, s: a << s, [np.uint16]),
    "ShiftRight": (51, 1, lambda a, b, d, s: a >> s, [np.uint16, np.int32]),
    "And": (60, 2, lambda a, b, d, s: a & b, SHORTS),
    "Or": (61, 2, lambda a, b, d, s: a | b, SHORTS),
    "Not": (62, 1, lambda a, b, d, s: ~a, SHORTS),
}
POSITIVE = {"Ln", "Sqrt", "Rsqrt", "Div", "Reciprocal"}


def draw(rng, dtype, positive):
    size = 16384 // np.dtype(dtype).itemsize
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal(size) * 2
        return (np.abs(x) + 0.05 if positive else x).astype(dtype)
    return rng.integers(-30000 if dtype in SIGNED else 0, 30000, size).astype(dtype)


def check_op(device, name, dtype, form, count, mask_bits, repeats, strides, seed):
    number, operands, formula, _ = OPS[name]
    rng = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    a, b, d = (draw(rng, dtype, name in POSITIVE) for _ in range(3))
    scalar = dtype(3) if np.dtype(dtype).kind != "f" else dtype(0.75)
    want = d.copy()
    d_block, a_block, b_block, d_rep, a_rep, b_rep = strides if form else (1, 1, 1, 8, 8, 8)
    for pair in lanes(size, form, count, mask_bits, repeats):
        at = address(pair, size, d_block, d_rep)
        x = wide(a[address(pair, size, a_block, a_rep)])
        y = wide(b[address(pair, size, b_block, b_rep)])
        with np.errstate(over="ignore"):
            want[at] = formula(x, y, wide(want[at]), wide(scalar)).astype(dtype)
    out = image(d)
    device.run(
        "test_vector",
        [
            number,
            TYPES.index(dtype),
            form,
            count,
            *mask_bits,
            repeats,
            *strides,
            bits(scalar, dtype),
        ],
        inputs=[image(a), image(b), image()],
        out=out,
    )
    got = out.view(dtype)
    if np.dtype(dtype).kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    tolerance = {4: 3e-7, 2: 1.1e-3}[size]
    np.testing.assert_allclose(
        got.astype(np.float64),
        want.astype(np.float64),
        rtol=tolerance,
        atol=tolerance
        if name in ("Ln", "FusedMulAdd", "FusedMulAddRelu", "MulAddDst", "Axpy")
        else 0,
        err_msg=name,
    )


CASES = [(name, dtype) for name, op in OPS.items() for dtype in op[3]]
IDS = [f"{name}-{np.dtype(dtype).name}" for name, dtype in CASES]


@pytest.mark.parametrize("name, dtype", CASES, ids=IDS)
def test_every_operation_in_its_three_forms(device, name, dtype):
    full = 256 // np.dtype(dtype).itemsize
    plain = (1, 1, 1, 8, 8, 8)
    check_op(device, name, dtype, 0, 5 * full - 3, (0, 0), 1, plain, 1)
    check_op(device, name, dtype, 1, full, (0, 0), 3, plain, 2)
    check_op(device, name, dtype, 2, 0, (0x8000F00F12345671, 0x0123456789ABCDEF), 2, plain, 3)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_masks_and_strides(device, data):
    name, dtype = data.draw(
        st.sampled_from(
            [
                ("Add", F32),
                ("Mul", F32),
                ("Muls", F32),
                ("Exp", F32),
                ("MulAddDst", F32),
                ("Sub", F16),
                ("Max", np.int32),
                ("And", np.uint16),
            ]
        )
    )
    full = 256 // np.dtype(dtype).itemsize
    form = data.draw(st.sampled_from([1, 2]))
    count = data.draw(st.integers(1, full))
    masks = tuple(data.draw(st.integers(1, 2**64 - 1)) for _ in range(2))
    repeats = data.draw(st.integers(1, 6))
    # Destination rows may not overlap each other, or their order would show.
    d_block, d_rep = data.draw(st.sampled_from([(1, 8), (1, 9), (1, 16), (2, 16), (3, 24)]))
    source = st.sampled_from([(1, 8), (1, 0), (0, 1), (0, 0), (1, 16), (2, 16), (1, 3)])
    a_block, a_rep = data.draw(source)
    b_block, b_rep = data.draw(source) if OPS[name][1] == 2 else (1, 8)
    strides = (d_block, a_block, b_block, d_rep, a_rep, b_rep)
    check_op(
        device, name, dtype, form, count, masks, repeats, strides, data.draw(st.integers(0, 999))
    )


def test_broadcast_column_over_rows(device):
    """The Brcb idiom: a [rows, 8] column against 64-float rows."""
    check_op(device, "Mul", F32, 1, 64, (0, 0), 32, (1, 1, 0, 8, 8, 1), 5)
    check_op(device, "Mul", F32, 1, 64, (0, 0), 16, (1, 1, 0, 16, 16, 1), 6)
    check_op(device, "Add", F32, 1, 64, (0, 0), 32, (1, 1, 1, 8, 8, 0), 7)


def test_mixed_precision_accumulation(device):
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(8192).astype(F16) for _ in range(2))
    for op, scalar in ((0, 0), (1, bits(0.5, F16))):
        d = rng.standard_normal(4096).astype(F32)
        want = d.copy()
        for r in range(3):
            x = a[r * 64 : r * 64 + 64].astype(F32)
            y = b[r * 64 : r * 64 + 64].astype(F32) if op == 0 else F32(0.5)
            want[r * 64 : r * 64 + 64] += x * y
        out = image(d)
        params = [op, 0, 1, 64, 0, 0, 3, 1, 1, 1, 8, 4, 4, scalar]
        device.run("test_mixed_multiply_add", params, inputs=[image(a), image(b), image()], out=out)
        np.testing.assert_allclose(out.view(F32), want, rtol=1e-6, atol=1e-6)


def run_unary(device, name, x):
    out = image()
    params = [OPS[name][0], 0, 0, x.size, 0, 0, 1, 1, 1, 1, 8, 8, 8]
    device.run("test_vector", params, inputs=[image(x), image(), image()], out=out)
    return out.view(F32)[: x.size]


def units_off(got, want):
    """Distance from a float64 reference in units of the float32 result's last place."""
    want32 = want.astype(F32)
    unit = np.spacing(np.abs(want32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - want) / unit


def test_exp_over_its_range(device):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-87.3, 88.7, 3000), rng.uniform(-1, 1, 1000)]).astype(F32)
    assert units_off(run_unary(device, "Exp", x), np.exp(x.astype(np.float64))).max() < 1.5
    # Results that are denormal numbers, and the edges.
    low = rng.uniform(-103.9, -87.4, 1000).astype(F32)
    assert units_off(run_unary(device, "Exp", low), np.exp(low.astype(np.float64))).max() < 1.5
    edge = np.array([0, -0.0, np.inf, -np.inf, np.nan, 89, 1e30, -110, -1e30, 88.72], F32)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(run_unary(device, "Exp", edge), np.exp(edge), rtol=2e-7)


def test_ln_over_its_range(device):
    rng = np.random.default_rng(2)
    x = np.concatenate([2.0 ** rng.uniform(-126, 127.9, 3000), rng.uniform(0.5, 2, 1000)])
    x = x.astype(F32)
    got, want = run_unary(device, "Ln", x), np.log(x.astype(np.float64))
    assert units_off(got, want).max() < 1.5
    edge = np.array([1, 0, -0.0, np.inf, np.nan, -1, -np.inf, 1e-42, 1.4e-45], F32)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(run_unary(device, "Ln", edge), np.log(edge), rtol=2e-7)


def test_special_values_propagate(device):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -4.0, 1e-40], F32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run_unary(device, "Sqrt", x), np.sqrt(x))
        np.testing.assert_array_equal(run_unary(device, "Reciprocal", x), 1 / x)
    np.testing.assert_array_equal(run_unary(device, "Abs", x), np.abs(x))


def test_mask_register_forms(device):
    rng = np.random.default_rng(4)
    a = rng.standard_normal(4096).astype(F32)

    def run(*params):
        out = image(fill=0)
        device.run("test_masks", params, inputs=[image(a)], out=out)
        return out.view(F32)

    got = run(0, 0, 0, 150)
    np.testing.assert_array_equal(got[:150], a[:150] * 2)
    assert not got[150:].any()
    got = run(1, 0, 0, 0, 0xF0F0, 0, 4)
    for r in range(4):
        keep = [(0xF0F0 >> i) & 1 for i in range(64)]
        np.testing.assert_array_equal(
            got[r * 64 : r * 64 + 64], a[r * 64 : r * 64 + 64] * 2 * np.array(keep, F32)
        )
    got = run(2, 0, 0, 10, 0, 0, 2)
    assert not got[10:64].any() and not got[74:2048].any()
    np.testing.assert_array_equal(got[64:74], a[64:74] * 2)
    np.testing.assert_array_equal(got[2048:2112], a[2048:2112] * 2)


def test_integers_wrap(device):
    a = np.full(64, 2**31 - 1, np.int32)
    out = image()
    device.run(
        "test_vector",
        [5, 2, 0, 64, 0, 0, 1, 1, 1, 1, 8, 8, 8, 5],
        inputs=[image(a), image(), image()],
        out=out,
    )
    assert out.view(np.int32)[0] == -(2**31) + 4
    assert math.isclose(float(out.view(np.int32)[63]), -(2**31) + 4)
