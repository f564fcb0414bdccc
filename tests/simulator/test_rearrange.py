# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Duplicate, Brcb, Copy, gathers, transposes and index vectors against their layouts."""

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.device import address, bits, image, lanes

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(11)


def run(
    device,
    op,
    kind,
    *,
    form=0,
    count=0,
    mask=(0, 0),
    repeats=1,
    blocks=(1, 1),
    reps=(8, 8),
    scalar=0,
    extra=0,
    more=0,
    in0=b"",
    in1=b"",
):
    out = image(fill=0x5A)
    device.run(
        "test_rearrange",
        [op, kind, form, count, *mask, repeats, *blocks, 1, *reps, 8, scalar, extra, more],
        inputs=[image(in0), image(in1), image()],
        out=out,
    )
    return out


def background(dtype):
    return image(fill=0x5A).view(dtype).copy()


@pytest.mark.parametrize("kind, dtype", [(0, np.float32), (1, BF16)])
@pytest.mark.parametrize("form", [0, 1, 2])
def test_duplicate(device, kind, dtype, form):
    if kind == 1 and form == 1:
        pytest.skip("the test kernel has the bit form only")
    size = np.dtype(dtype).itemsize
    mask = (0xF0F0F0F0F0F0F0F1, 0x8000000000000001)
    want = background(dtype)
    for pair in lanes(size, form, 45, mask, 3):
        want[address(pair, size, 2 if form else 1, 20 if form else 8)] = dtype(-1.5)
    got = run(
        device,
        0,
        kind,
        form=form,
        count=45,
        mask=mask,
        repeats=3,
        blocks=(2, 1),
        reps=(20, 8),
        scalar=bits(-1.5, dtype),
    )
    np.testing.assert_array_equal(got, want.view(np.uint8))


@pytest.mark.parametrize("kind, dtype", [(0, np.float32), (1, BF16)])
@pytest.mark.parametrize("block, repeat, repeats", [(1, 8, 4), (2, 16, 3), (8, 1, 5)])
def test_brcb(device, kind, dtype, block, repeat, repeats):
    """Element 8r+b fills the block at r*dstRepStride + b*dstBlkStride."""
    x = RNG.standard_normal(8 * repeats).astype(dtype)
    per_block = 32 // np.dtype(dtype).itemsize
    want = background(dtype)
    for r in range(repeats):
        for b in range(8):
            start = (r * repeat + b * block) * per_block
            want[start : start + per_block] = x[r * 8 + b]
    got = run(device, 1, kind, repeats=repeats, blocks=(block, 1), reps=(repeat, 8), in0=x)
    np.testing.assert_array_equal(got, want.view(np.uint8))


@pytest.mark.parametrize("kind, dtype", [(0, np.float32), (1, np.uint16)])
def test_copy(device, kind, dtype):
    x = RNG.integers(0, 2**16, 16384 // np.dtype(dtype).itemsize).astype(dtype)
    size = np.dtype(dtype).itemsize
    mask = (0xFFFFFFFFFFFF, 0xFFFF)
    want = background(dtype)
    for pair in lanes(size, 2 if kind else 1, 40, mask, 3):
        want[address(pair, size, 2, 17)] = x[address(pair, size, 1, 5)]
    got = run(device, 2, kind, count=40, mask=mask, repeats=3, blocks=(2, 1), reps=(17, 5), in0=x)
    np.testing.assert_array_equal(got, want.view(np.uint8))


def test_ub_to_ub(device):
    """DataCopyParams: blockLen and gaps in 32 B blocks, gaps from end to start."""
    x = RNG.standard_normal(2048).astype(np.float32)
    want = background(np.float32)
    for block in range(5):
        source = block * (3 + 2) * 8
        target = block * (3 + 4) * 8
        want[target : target + 24] = x[source : source + 24]
    got = run(device, 3, 0, count=3, repeats=5, blocks=(4, 2), in0=x)
    np.testing.assert_array_equal(got, want.view(np.uint8))
    got = run(device, 4, 0, count=72, in0=x).view(np.float32)
    np.testing.assert_array_equal(got[:72], x[:72])


def test_gather(device):
    x = RNG.standard_normal(2048).astype(np.float32)
    index = RNG.integers(0, 2000, 200)
    offsets = (index * 4).astype(np.uint32)
    got = run(device, 5, 0, count=200, extra=32, in0=x, in1=offsets).view(np.float32)
    np.testing.assert_array_equal(got[:200], x[index + 8])
    want = background(np.float32)
    for r in range(3):
        want[r * 72 : r * 72 + 50] = x[index[r * 64 : r * 64 + 50]]
    got = run(device, 5, 0, form=1, count=50, repeats=3, reps=(9, 8), in0=x, in1=offsets)
    np.testing.assert_array_equal(got, want.view(np.uint8))
    y = RNG.standard_normal(2048).astype(BF16)
    got = run(device, 5, 1, form=1, count=128, in0=y, in1=(index[:128] * 2).astype(np.uint32))
    np.testing.assert_array_equal(got.view(np.uint16)[:128], y[index[:128]].view(np.uint16))


def test_gatherb(device):
    x = RNG.standard_normal(2048).astype(np.float32)
    index = RNG.integers(0, 200, 16)
    want = background(np.float32)
    for r in range(2):
        for b in range(8):
            start = (r * 16 + b * 2) * 8
            source = index[r * 8 + b] * 8
            want[start : start + 8] = x[source : source + 8]
    got = run(
        device,
        6,
        0,
        repeats=2,
        blocks=(2, 1),
        reps=(16, 8),
        in0=x,
        in1=(index * 32).astype(np.uint32),
    )
    np.testing.assert_array_equal(got, want.view(np.uint8))


@pytest.mark.parametrize("pattern", range(1, 8))
def test_gather_mask_fixed_patterns(device, pattern):
    x = RNG.standard_normal(2048).astype(np.float32)
    start, step = {1: (0, 2), 2: (1, 2), 7: (0, 1)}.get(pattern, (pattern - 3, 4))
    want = np.concatenate([x[r * 64 : r * 64 + 64][start::step] for r in range(3)])
    got = run(device, 7, 0, repeats=3, extra=pattern, in0=x).view(np.float32)
    np.testing.assert_array_equal(got[: want.size], want)
    assert got[4095] == want.size


def test_gather_mask_with_a_pattern_and_counter_mode(device):
    x = RNG.standard_normal(2048).astype(np.float32)
    pattern = RNG.integers(0, 2**32, 8, dtype=np.uint64).astype(np.uint32)
    keep = np.unpackbits(pattern.view(np.uint8), bitorder="little")[:40].astype(bool)
    got = run(device, 7, 0, form=1, count=40, more=1, repeats=1, in0=x, in1=pattern)
    np.testing.assert_array_equal(got.view(np.float32)[: keep.sum()], x[:40][keep])


def test_transposes(device):
    x = RNG.integers(0, 2**16, (16, 16)).astype(np.uint16)
    got = run(device, 8, 0, in0=x).view(np.uint16)[:256]
    np.testing.assert_array_equal(got.reshape(16, 16), x.T)
    # Rows 64 elements apart, three repeats one block apart: a 16 x 48 strip.
    y = RNG.integers(0, 2**16, (16, 64)).astype(np.uint16)
    got = run(device, 9, 0, repeats=3, reps=(16, 1), extra=16, more=64, in0=y).view(np.uint16)
    np.testing.assert_array_equal(got[:768].reshape(48, 16), y[:, :48].T)
    # 32 bit: destination rows of 16 take two addresses.
    z = RNG.standard_normal((16, 8)).astype(np.float32)
    got = run(device, 10, 0, repeats=1, reps=(0, 0), extra=8, more=8, in0=z).view(np.float32)
    np.testing.assert_array_equal(got[:128].reshape(8, 16), z.T)


def test_create_vec_index(device):
    got = run(device, 11, 0, count=100, scalar=bits(2.5)).view(np.float32)
    np.testing.assert_array_equal(got[:100], np.arange(100) + 2.5)
    got = run(device, 11, 1, count=64, repeats=2, scalar=7).view(np.int32)
    np.testing.assert_array_equal(got[:128], np.arange(128) + 7)
