# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Compare, Select and the reductions against their documented results."""

import operator

import numpy as np
import pytest

from tests.simulator.device import address, bits, image, lanes

DTYPES = [np.float32, np.float16]
COMPARE = [operator.lt, operator.gt, operator.eq, operator.le, operator.ge, operator.ne]
RNG = np.random.default_rng(21)


def run(
    device,
    op,
    kind,
    *,
    form=1,
    count=0,
    mask=(0, 0),
    repeats=1,
    blocks=(1, 1, 1),
    reps=(8, 8, 8),
    scalar=0,
    extra=0,
    inputs=(b"", b"", b""),
):
    out = image(fill=0xA5)
    device.run(
        "test_select_reduce",
        [op, kind, form, count, *mask, repeats, *blocks, *reps, scalar, extra],
        inputs=[image(x) for x in inputs],
        out=out,
        checks="races",
    )
    return out


def values(dtype, count=2048):
    x = RNG.integers(-3, 4, count).astype(dtype)
    x[::97] = np.nan
    x[5::131] = np.inf
    return x


def packed(flags):
    return np.packbits(flags, bitorder="little")


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("mode", range(6))
def test_compare(device, kind, mode):
    dtype = DTYPES[kind]
    full = 256 // np.dtype(dtype).itemsize
    a, b = values(dtype), values(dtype)
    flags = COMPARE[mode](a, b)
    got = run(device, 0, kind, count=4 * full, extra=mode, inputs=(a, b, b""))
    np.testing.assert_array_equal(got[: full // 2], packed(flags[: 4 * full]))
    got = run(
        device, 1, kind, count=full, repeats=3, reps=(8, 8, 0), extra=mode, inputs=(a, b, b"")
    )
    want = COMPARE[mode](a[: 3 * full].reshape(3, full), b[:full])
    np.testing.assert_array_equal(got[: full * 3 // 8], packed(want.ravel()))
    flags = COMPARE[mode](a, dtype(1))
    for op, extra in ((2, dict(count=2 * full)), (3, dict(count=full, repeats=2))):
        got = run(
            device, op, kind, scalar=bits(1, dtype), extra=mode, inputs=(a, b"", b""), **extra
        )
        np.testing.assert_array_equal(got[: full // 4], packed(flags[: 2 * full]))
    got = run(device, 4, kind, count=full, extra=mode, inputs=(a, b, b""))
    np.testing.assert_array_equal(got[: full // 8], packed(COMPARE[mode](a, b)[:full]))


@pytest.mark.parametrize("kind", [0, 1])
def test_select(device, kind):
    dtype = DTYPES[kind]
    size = np.dtype(dtype).itemsize
    full = 256 // size
    a, b = RNG.standard_normal((2, 16384 // size)).astype(dtype)
    mask = RNG.integers(0, 256, 4096).astype(np.uint8)
    chosen = np.unpackbits(mask, bitorder="little").astype(bool)
    count = 5 * full - 13
    got = run(device, 10, kind, count=count, extra=2, inputs=(a, b, mask)).view(dtype)
    np.testing.assert_array_equal(got[:count], np.where(chosen[:count], a[:count], b[:count]))
    got = run(device, 12, kind, count=count, scalar=bits(7, dtype), inputs=(a, b"", mask))
    np.testing.assert_array_equal(
        got.view(dtype)[:count], np.where(chosen[:count], a[:count], dtype(7))
    )
    # Repeats with strides: mode 2 has a row of bits each, mode 0 the same row for all.
    for op, mode in ((11, 2), (11, 0), (13, 1), (14, 0)):
        want = image(fill=0xA5).view(dtype)
        strides = dict(blocks=(1, 1, 1), reps=(9, 8, 0))
        lanes_used = full if op == 14 else full - 3
        for r, lane in lanes(size, 1, lanes_used, (0, 0), 4):
            bit = chosen[lane if mode == 0 else r * full + lane]
            other = dtype(7) if op == 13 else b[address((r, lane), size, 1, 0)]
            source = a[address((r, lane), size, 1, 8)]
            want[address((r, lane), size, 1, 9)] = source if bit else other
        got = run(
            device,
            op,
            kind,
            count=lanes_used,
            repeats=4,
            extra=mode,
            scalar=bits(7, dtype),
            inputs=(a, b, mask),
            **strides,
        )
        np.testing.assert_array_equal(got, want.view(np.uint8), err_msg=f"{op} {mode}")


def rows(x, size, form, count, mask, repeats, block, repeat):
    """The participating values of each repeat."""
    out = [[] for _ in range(repeats)]
    for pair in lanes(size, form, count, mask, repeats):
        out[pair[0]].append((pair[1], float(x[address(pair, size, block, repeat)])))
    return out


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("form", [1, 2])
def test_whole_reduce_sum(device, kind, form):
    dtype = DTYPES[kind]
    size = np.dtype(dtype).itemsize
    x = RNG.standard_normal(16384 // size).astype(dtype)
    mask = (0xFFF0F0F0F0F0F0F1, 0x80000000000000FF)
    for block, repeat, count in ((1, 8, 256 // size), (1, 9, 37), (2, 16, 50)):
        got = run(
            device,
            20,
            kind,
            form=form,
            count=count,
            mask=mask,
            repeats=7,
            blocks=(1, block, 1),
            reps=(3, repeat, 8),
            inputs=(x, b"", b""),
        ).view(dtype)
        for r, row in enumerate(rows(x, size, form, count, mask, 7, block, repeat)):
            want = sum(v for _, v in row)
            scale = sum(abs(v) for _, v in row)
            assert abs(float(got[3 * r]) - want) <= scale * (1e-6 if kind == 0 else 2e-3)
    # Neighbours are added first: the order is part of the result.
    y = np.zeros(64, np.float32)
    y[:4] = [1e8, 1, -1e8, 1]
    if kind == 0:
        got = run(device, 20, 0, count=64, repeats=1, reps=(1, 8, 8), inputs=(y, b"", b""))
        want = (np.float32(1e8) + np.float32(1)) + (np.float32(-1e8) + np.float32(1))
        assert got.view(np.float32)[0] == want
        got = run(device, 27, 0, count=64, repeats=1, reps=(1, 8, 8), inputs=(y, b"", b""))
        assert got.view(np.float32)[0] == want


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("op", [21, 22])
@pytest.mark.parametrize("order", range(4))
def test_whole_reduce_extremes(device, kind, op, order):
    dtype = DTYPES[kind]
    index_type = [np.uint32, np.uint16][kind]
    size = np.dtype(dtype).itemsize
    x = RNG.integers(-50, 50, 16384 // size).astype(dtype)
    pick = max if op == 21 else min
    got = run(
        device, op, kind, count=40, repeats=5, reps=(1, 8, 8), extra=order, inputs=(x, b"", b"")
    )
    for r, row in enumerate(rows(x, size, 1, 40, (0, 0), 5, 1, 8)):
        best = pick(v for _, v in row)
        where = next(lane for lane, v in row if v == best)
        item = got[r * size * (2 if order < 2 else 1) :]
        if order != 3:
            value = item[size:] if order == 1 else item
            assert value[:size].view(dtype)[0] == best
        if order != 2:
            index = item[size:] if order == 0 else item
            assert index[:size].view(index_type)[0] == where


@pytest.mark.parametrize("kind", [0, 1])
def test_block_and_pair_reductions(device, kind):
    dtype = DTYPES[kind]
    size = np.dtype(dtype).itemsize
    full, per_block = 256 // size, 32 // size
    x = RNG.integers(-50, 50, 16384 // size).astype(dtype)
    table = x[: 3 * full].reshape(3, 8, per_block).astype(np.float64)
    for op, reduce in ((23, np.sum), (24, np.max), (25, np.min)):
        got = run(
            device, op, kind, count=full, repeats=3, reps=(1, 8, 8), inputs=(x, b"", b"")
        ).view(dtype)
        np.testing.assert_array_equal(got[:24].astype(np.float64), reduce(table, 2).ravel())
    got = run(device, 26, kind, count=full, repeats=3, reps=(1, 8, 8), inputs=(x, b"", b"")).view(
        dtype
    )
    want = x[: 3 * full].astype(np.float64).reshape(-1, 2).sum(1)
    np.testing.assert_array_equal(got[: 3 * full // 2].astype(np.float64), want)
    # Lanes outside the mask count as zero.
    got = run(device, 23, kind, form=2, mask=(0b1011, 0), repeats=1, inputs=(x, b"", b""))
    assert got.view(dtype)[0] == x[0] + x[1] + x[3] and got.view(dtype)[1] == 0


@pytest.mark.parametrize("kind", [0, 1])
def test_reductions_to_one_value(device, kind):
    dtype = DTYPES[kind]
    x = RNG.integers(-20, 20, 4096).astype(dtype)
    count = 1000 - 7 * kind
    got = run(device, 28, kind, count=count, inputs=(x, b"", b"")).view(dtype)
    np.testing.assert_allclose(float(got[0]), x[:count].astype(np.float64).sum(), rtol=1e-3 * kind)
    for op, pick in ((29, np.argmax), (30, np.argmin)):
        got = run(device, op, kind, count=count, inputs=(x, b"", b""))
        at = int(pick(x[:count]))
        size = np.dtype(dtype).itemsize
        assert got[:size].view(dtype)[0] == x[at]
        assert got[size : 2 * size].view([np.uint32, np.uint16][kind])[0] == at
