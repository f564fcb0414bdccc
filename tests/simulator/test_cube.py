# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Nd2Nz, LoadData, LoadDataWithTranspose, Mmad and Fixpipe against their documented layouts.

The images of L1, L0A, L0B and L0C are built here index by index from the formulas, and the product
is compared with float64 matrix multiplication of the matrices that they encode.
"""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.device import DeviceError

BF16 = ml_dtypes.bfloat16
TYPES = [BF16, np.float16, np.float32]
L1_ELEMENTS = 65536


def ceil(a, b):
    return -(-a // b)


def c0(dtype):
    return 32 // np.dtype(dtype).itemsize


def to_nz(x, rows=None):
    """[N, D] to stripes of C0 columns: what Nd2Nz makes with dstNzC0Stride = rows."""
    n, d = x.shape
    rows = rows or ceil(n, 16) * 16
    width = c0(x.dtype)
    out = np.zeros((ceil(d, width), rows, width), x.dtype)
    for j in range(d):
        out[j // width, :n, j % width] = x[:, j]
    return out.ravel()


def run(
    device,
    dtype,
    a_l1,
    b_l1,
    a_loads,
    b_loads,
    m,
    n,
    k,
    *,
    nd2nz=None,
    nd=None,
    times=1,
    fixpipe=None,
    out=None,
    kind=0,
    a_offset=0,
    split=0,
    saturate=0,
    atomic=0,
):
    params = [0] * 128
    params[0] = TYPES.index(dtype)
    size = np.dtype(dtype).itemsize
    images = []
    for i, source in enumerate((a_l1, b_l1)):
        padded = np.zeros(ceil(max(source.size, 1), 512) * 512, dtype)
        padded[: source.size] = source
        params[1 + i] = padded.size
        assert padded.size * size <= 131072
        images.append(padded)
    params[3] = nd is not None
    params[4], params[5] = len(a_loads), len(b_loads)
    params[6:10] = [m, n, k, times]
    params[12:20] = nd2nz or [0] * 8
    params[20] = a_offset
    params[21:29] = fixpipe or [ceil(n, 16) * 16, m, ceil(m, 16) * 16, ceil(n, 16) * 16, 0, 1, 0, 0]
    params[29:33] = [kind, split, saturate, atomic]
    flat = [value for load in [*a_loads, *b_loads] for value in load]
    assert len(flat) <= 88
    params[40 : 40 + len(flat)] = flat
    if out is None:
        out = np.zeros((m, ceil(n, 16) * 16), np.float32)
    inputs = [*images] + ([nd] if nd is not None else [])
    device.run("test_cube", params, inputs=inputs, out=out, checks="races")
    return out


def load(start, repeat, stride, gap=0, last=0, src=0, dst=0, kind=0):
    return [kind, src, dst, start, repeat, stride, gap, last]


def operand_a(x):
    """Row-major X[M, K] as the left operand: a row of fractals at a time."""
    m1, k1 = ceil(x.shape[0], 16), ceil(x.shape[1], c0(x.dtype))
    return to_nz(x), [load(i, k1, m1, dst=i * k1 * 512) for i in range(m1)]


def operand_b_transposed(y):
    """Row-major Y[N, K], B = Y^T: all fractals in order."""
    return to_nz(y), [load(0, ceil(y.shape[0], 16) * ceil(y.shape[1], c0(y.dtype)), 1)]


def integers(rng, shape, dtype, span=8):
    return rng.integers(-span, span + 1, shape).astype(np.float32).astype(dtype)


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_product_of_any_size(device, data):
    """A = X, B = Y^T with real m, n and k; results beyond them are not looked at."""
    dtype = data.draw(st.sampled_from(TYPES))
    m = data.draw(st.integers(2, 80))
    n = data.draw(st.integers(1, 80))
    k = data.draw(st.integers(1, 80 if dtype == np.float32 else 128))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x, y = integers(rng, (m, k), dtype), integers(rng, (n, k), dtype)
    times = data.draw(st.integers(1, 3))
    a_l1, a_loads = operand_a(x)
    b_l1, b_loads = operand_b_transposed(y)
    got = run(device, dtype, a_l1, b_l1, a_loads, b_loads, m, n, k, times=times)
    np.testing.assert_array_equal(got[:, :n], times * exact(x, y.T))


@pytest.mark.parametrize("dtype", TYPES[:2])
def test_transposing_loads(device, dtype):
    """B = Y[K, N] and A = X^T with X[K, M], through ifTranspose."""
    rng = np.random.default_rng(4)
    m, n, k = 48, 64, 96
    x, y = integers(rng, (k, m), dtype), integers(rng, (k, n), dtype)
    k1, n1, m1 = k // 16, n // 16, m // 16
    a_loads = [load(i * k1, k1, 1, last=1, dst=i * k1 * 512) for i in range(m1)]
    b_loads = [load(i, n1, k1, last=1, dst=i * n1 * 512) for i in range(k1)]
    got = run(device, dtype, to_nz(x), to_nz(y), a_loads, b_loads, m, n, k)
    np.testing.assert_array_equal(got, exact(x.T, y))
    # LoadDataWithTranspose does the same for 16 bit, one fractal an iteration.
    for one in [*a_loads, *b_loads]:
        one[0], one[7] = 1, 0
    again = run(device, dtype, to_nz(x), to_nz(y), a_loads, b_loads, m, n, k)
    np.testing.assert_array_equal(again, got)


def test_float_transposes_in_squares(device):
    """LoadDataWithTranspose on float: two 16x8 fractals make a 16x16 square, turned as one."""
    rng = np.random.default_rng(5)
    m, n, k = 32, 48, 32
    x, y = integers(rng, (k, m), np.float32), integers(rng, (k, n), np.float32)

    def squares(z):
        """ZN order: square (i, j) at i * columns + j, its two 16x8 halves one after the other."""
        rows, columns = z.shape[0] // 16, z.shape[1] // 16
        return np.concatenate(
            [
                np.concatenate(
                    [
                        z[16 * i : 16 * i + 16, 16 * j + 8 * h : 16 * j + 8 * h + 8].ravel()
                        for h in range(2)
                    ]
                )
                for i in range(rows)
                for j in range(columns)
            ]
        )

    k1, m1, n1 = k // 8, m // 16, n // 16
    # A = X^T: rows of squares of X run along m. Square (ki, mi), turned, gives the fractals
    # (mi, 2 ki) and (mi, 2 ki + 1) of A, which lie side by side.
    a_loads = [load(mi, k // 16, m1, gap=1, dst=mi * k1 * 512, kind=1) for mi in range(m1)]
    # B = Y: square (ki, ni), turned, gives the fractals (2 ki, ni) and (2 ki + 1, ni), n1 apart.
    b_loads = [
        load(ki * n1, n1, 1, last=n1 - 1, dst=2 * ki * n1 * 512, kind=1) for ki in range(k // 16)
    ]
    got = run(device, np.float32, squares(x), squares(y), a_loads, b_loads, m, n, k)
    np.testing.assert_array_equal(got, exact(x.T, y))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_nd2nz(device, data):
    """GM to L1, read back through the left operand and an identity."""
    dtype = data.draw(st.sampled_from(TYPES))
    width = c0(dtype)
    n = data.draw(st.integers(1, 40))
    d = data.draw(st.integers(1, 3 * width))
    matrices = data.draw(st.integers(1, 3))
    pitch = d + data.draw(st.integers(0, 9))
    rows = ceil(n, 16) * 16
    n_stride = data.draw(st.sampled_from([1, 1, 2]))
    c0_stride = rows * n_stride
    matrix_in = n * pitch + data.draw(st.integers(0, 20))
    matrix_out = ceil(d, width) * c0_stride * width
    offset = data.draw(st.sampled_from([0, width, 4 * width]))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    source = integers(rng, matrices * matrix_in + 64, dtype, 100)
    before = integers(rng, 32768 // 2, dtype, 100)

    image = before.copy()
    for mat in range(matrices):
        for row in range(n):
            for column in range(ceil(d, width) * width):
                at = (
                    offset
                    + mat * matrix_out
                    + column // width * c0_stride * width
                    + row * n_stride * width
                    + column % width
                )
                image[at] = source[mat * matrix_in + row * pitch + column] if column < d else 0
    fractals = min(ceil(offset + matrices * matrix_out, 16 * width), 100)
    # Every fractal of L1 is a 16 x C0 block of A; a C0 x C0 identity on the right.
    identity = np.eye(width, dtype=np.float32).astype(dtype)
    eye_l1 = to_nz(identity, rows=16)
    loads = [load(0, fractals, 1)]
    got = run(
        device,
        dtype,
        before,
        eye_l1,
        loads,
        [load(0, 1, 1)],
        fractals * 16,
        width,
        width,
        nd2nz=[matrices, n, d, matrix_in, pitch, c0_stride, n_stride, matrix_out],
        nd=source,
        a_offset=offset,
    )
    want = image[: fractals * 16 * width].reshape(-1, width)
    np.testing.assert_array_equal(got[:, :width], want.astype(np.float32))


def test_operands_pass_denormals_and_specials(device):
    values = np.array([1.0, -0.0, np.inf, 1e-40, -3e-41, 6e-8, 65504, np.nan], np.float32)
    x = np.zeros((16, 16), np.float32)
    x[:, 0] = np.resize(values, 16)
    y = np.zeros((16, 16), np.float32)
    y[0, 0] = 1
    for dtype in TYPES:
        width = c0(dtype)
        with np.errstate(all="ignore"):
            left, right = x.astype(dtype), y.astype(dtype)
        a_l1, a_loads = operand_a(left)
        b_l1, b_loads = operand_b_transposed(right)
        got = run(device, dtype, a_l1, b_l1, a_loads, b_loads, 16, 16, width)
        np.testing.assert_array_equal(got[:, 0], left[:, 0].astype(np.float32))


def test_accumulates_in_float(device):
    rng = np.random.default_rng(6)
    x = rng.standard_normal((64, 128)).astype(np.float32).astype(BF16)
    y = rng.standard_normal((64, 128)).astype(np.float32).astype(BF16)
    a_l1, a_loads = operand_a(x)
    b_l1, b_loads = operand_b_transposed(y)
    got = run(device, BF16, a_l1, b_l1, a_loads, b_loads, 64, 64, 128)
    want = exact(x, y.T)
    assert np.linalg.norm(got - want) / np.linalg.norm(want) < 3e-7


def l0c_product(m, n):
    """Operands whose product is a given [m, n] matrix of small integers, k = 16."""
    rng = np.random.default_rng(m + n)
    x, y = integers(rng, (m, 16), BF16), integers(rng, (n, 16), BF16)
    a_l1, a_loads = operand_a(x)
    b_l1, b_loads = operand_b_transposed(y)
    return (BF16, a_l1, b_l1, a_loads, b_loads, m, n, 16), exact(x, y.T)


@pytest.mark.parametrize("kind, dtype", [(0, np.float32), (1, BF16), (2, np.float16)])
def test_fixpipe_row_major(device, kind, dtype):
    """NZ2ND writes mSize rows of nSize columns at a pitch, and nothing between."""
    args, want = l0c_product(40, 48)
    out = np.full((40, 70), 77, np.float32).astype(dtype)
    run(device, *args, fixpipe=[48, 37, 48, 70, 0, 1, 0, 0], kind=kind, out=out)
    np.testing.assert_array_equal(out[:37, :48].astype(np.float64), want[:37].astype(dtype))
    assert (out[37:] == 77).all() and (out[:, 48:] == 77).all()
    out = np.full((40, 48), 77, np.float32).astype(dtype)
    run(device, *args, fixpipe=[32, 40, 48, 48, 1, 1, 0, 0], kind=kind, out=out)
    np.testing.assert_array_equal(
        out[:, :32].astype(np.float64), np.maximum(want[:, :32], 0).astype(dtype)
    )


def test_fixpipe_several_matrices(device):
    """ndNum matrices, srcNdStride in 1 KiB fractals, dstNdStride in elements."""
    args, want = l0c_product(32, 64)
    out = np.zeros((4, 1100), np.float32)
    # Two matrices of 32 x 16: columns 0..15 and 32..47 (stripes 0 and 2: four fractals apart).
    run(device, *args, fixpipe=[16, 32, 32, 20, 0, 2, 4, 1000], out=out)
    flat = out.ravel()
    for matrix, columns in enumerate((slice(0, 16), slice(32, 48))):
        got = np.stack(
            [flat[matrix * 1000 + r * 20 : matrix * 1000 + r * 20 + 16] for r in range(32)]
        )
        np.testing.assert_array_equal(got, want[:, columns])


@pytest.mark.parametrize("kind, dtype", [(3, np.float32), (4, BF16)])
def test_fixpipe_nz(device, kind, dtype):
    """NZ to NZ: stripes of 16 columns, dstStride in 32 B blocks between stripes."""
    args, want = l0c_product(40, 48)
    pitch = 160
    out = np.full(3 * pitch * 32 // np.dtype(dtype).itemsize, 77, np.float32).astype(dtype)
    run(device, *args, fixpipe=[48, 40, 48, pitch, 0, 1, 0, 0], kind=kind, out=out)
    expected = np.full_like(out, 77)
    for stripe in range(3):
        at = stripe * pitch * 32 // np.dtype(dtype).itemsize
        block = want[:, 16 * stripe : 16 * stripe + 16].astype(dtype)
        expected[at : at + 640] = block.ravel()
    np.testing.assert_array_equal(out, expected)
    if kind == 3:  # channel split: stripes of 8 columns
        out = np.zeros(6 * 400, np.float32)
        run(device, *args, fixpipe=[48, 40, 48, 50, 0, 1, 0, 0], kind=3, out=out, split=1)
        for stripe in range(6):
            got = out[stripe * 400 : stripe * 400 + 320].reshape(40, 8)
            np.testing.assert_array_equal(got, want[:, 8 * stripe : 8 * stripe + 8])


def test_fixpipe_rounds_to_nearest_even_and_saturates_on_request(device):
    values = np.array(
        [1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, -3.4e38, np.inf, np.nan, 1e-40, 2], np.float32
    )
    x = np.zeros((16, 8), np.float32)
    x[:, 0] = np.resize(values, 16)
    y = np.zeros((16, 8), np.float32)
    y[0, 0] = 1
    a_l1, a_loads = operand_a(x)
    b_l1, b_loads = operand_b_transposed(y)
    args = (np.float32, a_l1, b_l1, a_loads, b_loads, 16, 16, 8)
    out = np.zeros((16, 16), BF16)
    with np.errstate(all="ignore"):
        run(device, *args, kind=1, out=out)
        np.testing.assert_array_equal(
            out[:, 0].astype(np.float32), x[:, 0].astype(BF16).astype(np.float32)
        )
        run(device, *args, kind=1, out=out, saturate=1)
    got = out[:8, 0].astype(np.float64)
    largest = float(ml_dtypes.finfo(BF16).max)
    assert got[2] == largest and got[3] == -largest and got[4] == largest and got[5] == 0


def test_fixpipe_adds_in_atomic_mode(device):
    args, want = l0c_product(32, 32)
    out = np.ones((32, 32), np.float32)
    run(device, *args, out=out, atomic=1)
    np.testing.assert_array_equal(out, want + 1)


def test_fixpipe_to_l1(device):
    rng = np.random.default_rng(8)
    x, y = integers(rng, (16, 16), BF16, 3), integers(rng, (16, 16), BF16, 3)
    out = np.zeros((16, 16), np.float32)
    device.run("test_fixpipe_to_l1", inputs=[x, y], out=out)
    middle = exact(x, y).astype(BF16)
    np.testing.assert_array_equal(out, exact(middle, y))


def fractals(x):
    """Row-major [16 n, 16] as n fractals."""
    return x.reshape(-1, 16, 16)


@pytest.mark.parametrize("bias", [0, 1])
def test_constants_fractals_from_gm_and_bias(device, bias):
    rng = np.random.default_rng(9)
    in0, in1 = (integers(rng, (128, 16), np.float16) for _ in range(2))
    row = integers(rng, 32, np.float32)
    for case in range(3):
        out = np.zeros((32, 32), np.float32)
        device.run("test_cube_sources", [case, bias], inputs=[in0, in1, row], out=out)
        right = fractals(in1)[:2].reshape(32, 16)  # [n, k] of both fractals
        if case == 0:
            left, right = np.full((32, 16), 3.0), np.full((32, 16), 0.5)
        elif case == 1:
            left = np.ones((32, 16))
            left[[0, 1, 4, 5]] = 7
        else:
            left = fractals(in0)[[1, 3]].reshape(32, 16)
        want = left.astype(np.float64) @ right.T.astype(np.float64) + (row if bias else 0)
        np.testing.assert_array_equal(out, want)


def test_a_bias_that_would_be_ignored_is_refused(device):
    zeros = np.zeros((128, 16), np.float16)
    row = np.zeros(32, np.float32)
    with pytest.raises(DeviceError, match="Mmad .*a bias with cmatrixInitVal true"):
        device.run(
            "test_cube_sources",
            [0, 2],
            inputs=[zeros, zeros, row],
            out=np.zeros((32, 32), np.float32),
        )
