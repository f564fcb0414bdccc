# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""DataCopy and DataCopyPad between GM and UB, byte by byte, and the atomic modes."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.device import UB_BYTES, bits, image

BF16 = ml_dtypes.bfloat16
PAD = [np.float32, BF16, np.uint8]


def align(value, unit=32):
    return -(-value // unit) * unit


def pad_in(source, before, dtype, count, length, gap_in, gap_out, pad, left, right, value, at):
    """The documented result of GM -> UB: blocks start on 32 B, gaps from end to start."""
    out = before.copy()
    size = np.dtype(dtype).itemsize
    fill = np.array([value], dtype).view(np.uint8)
    for i in range(count if length else 0):
        block = source[i * (length + gap_in) :][:length]
        left_bytes = left * size if pad else 0
        body = left_bytes + length + (right * size if pad else 0)
        start = at + i * (align(body) + gap_out * 32)
        if pad:
            out[start : start + align(body)] = np.tile(fill, align(body) // size)
        else:
            out[start + length : start + align(body)] = 0xFF
        out[start + left_bytes : start + left_bytes + length] = block
    return out


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_pad_in(device, data):
    kind = data.draw(st.integers(0, 2))
    dtype = PAD[kind]
    size = np.dtype(dtype).itemsize
    count = data.draw(st.integers(0, 9))
    length = data.draw(st.integers(0, 300 // size)) * size
    gap_in, gap_out = data.draw(st.integers(0, 200)), data.draw(st.integers(0, 5))
    pad = data.draw(st.booleans())
    left, right = (data.draw(st.integers(0, 32 // size)) if pad else 0 for _ in range(2))
    at, source_at = 32 * data.draw(st.integers(0, 8)), data.draw(st.integers(0, 100))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    source, before = rng.integers(0, 256, (2, UB_BYTES)).astype(np.uint8)
    value = 3 if kind == 2 else -2.5
    out = image()
    device.run(
        "test_copy",
        [kind, count, length, gap_in, gap_out, pad, left, right, bits(value, dtype), at, source_at],
        inputs=[source, before],
        out=out,
        checks="races",
    )
    want = pad_in(
        source[source_at:],
        before,
        dtype,
        count,
        length,
        gap_in,
        gap_out,
        pad,
        left,
        right,
        value,
        at,
    )
    np.testing.assert_array_equal(out, want)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pad_out(device, data):
    """UB -> GM: source blocks on 32 B with gaps in blocks, destination gaps in bytes."""
    kind = data.draw(st.integers(0, 2))
    size = np.dtype(PAD[kind]).itemsize
    count = data.draw(st.integers(0, 9))
    length = data.draw(st.integers(0, 300 // size)) * size
    gap_in, gap_out = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 200))
    at, target_at = 32 * data.draw(st.integers(0, 8)), data.draw(st.integers(0, 100))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    source, before = rng.integers(0, 256, (2, UB_BYTES)).astype(np.uint8)
    out = before.copy()
    device.run(
        "test_copy",
        [10 + kind, count, length, gap_in, gap_out, 0, 0, 0, 0, at, target_at],
        inputs=[source],
        out=out,
    )
    want = before.copy()
    for i in range(count if length else 0):
        block = source[at + i * (align(length) + gap_in * 32) :][:length]
        start = target_at + i * (length + gap_out)
        want[start : start + length] = block
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize(
    "count, length, gap_in, gap_out", [(1, 5, 0, 0), (4, 3, 2, 5), (7, 1, 9, 0)]
)
def test_block_copies(device, count, length, gap_in, gap_out):
    """DataCopyParams: everything in 32 B blocks, gaps from end to start, either way."""
    rng = np.random.default_rng(1)
    source, before = rng.integers(0, 256, (2, UB_BYTES)).astype(np.uint8)
    for op, offset in ((3, 64), (13, 64)):
        want = before.copy()
        for i in range(count):
            at = i * (length + gap_in) * 32
            to = i * (length + gap_out) * 32
            base_in, base_out = (10, offset) if op == 3 else (offset, 10)
            want[base_out + to : base_out + to + 32 * length] = source[base_in + at :][
                : 32 * length
            ]
        out = image() if op == 3 else before.copy()
        inputs = [source, before] if op == 3 else [source]
        device.run(
            "test_copy",
            [op, count, length, gap_in, gap_out, 0, 0, 0, 0, offset, 10],
            inputs=inputs,
            out=out,
        )
        np.testing.assert_array_equal(out, want)


def test_counted_copies(device):
    rng = np.random.default_rng(2)
    source, before = rng.integers(0, 256, (2, UB_BYTES)).astype(np.uint8)
    out = image()
    device.run("test_copy", [4, 160, *[0] * 7, 32, 6], inputs=[source, before], out=out)
    want = before.copy()
    want[32:352] = source[6:326]
    np.testing.assert_array_equal(out, want)
    out = before.copy()
    device.run("test_copy", [14, 160, *[0] * 7, 32, 6], inputs=[source], out=out)
    want = before.copy()
    want[6:326] = source[32:352]
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("op, dtype", [(20, np.float32), (21, BF16), (22, np.int32)])
def test_atomic_modes(device, op, dtype):
    """Three blocks of 10 elements that overlap nothing: read, combine, write."""
    rng = np.random.default_rng(3)
    size = np.dtype(dtype).itemsize
    source, before = (rng.integers(-99, 99, UB_BYTES // size).astype(dtype) for _ in range(2))
    out = before.copy()
    device.run(
        "test_copy",
        [op, 3, 10 * size, 1, 4 * size, *[0] * 6],
        inputs=[source.view(np.uint8)],
        out=out.view(np.uint8),
    )
    want = before.copy()
    for i in range(3):
        block = source[i * (align(10 * size) + 32) // size :][:10]
        at = slice(i * 14, i * 14 + 10)
        want[at] = np.maximum(want[at], block) if op == 22 else want[at] + block
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("threads", [1, 2])
def test_atomic_add_from_many_cores(device, threads):
    source = np.arange(4096, dtype=np.int32)
    out = np.zeros(4096, np.int32)
    device.run("test_copy", [23], inputs=[source], out=out, blocks=40, threads=threads)
    np.testing.assert_array_equal(out[:64], 40 * np.arange(64))
    assert not out[64:].any()
