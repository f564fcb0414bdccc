# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Which lanes a report is about, for any mask and stride: the checked library fills what nothing
wrote with NaN, and the instructions of these kernels make NaN of NaN only. So a store shows
unwritten memory exactly where its values are NaN."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.device import Device, DeviceError
from tests.support import build_tree
from tests.support.aclnn import BF16

FLOATS = 2048
NAMES = (
    "Add MulAddDst Muls Exp Copy CastToHalf CastFromHalf Axpy Duplicate Select Gather "
    "WholeReduceSum BlockReduceSum PairReduceSum Brcb FusedMulAdd"
).split()
# In units of their results: 1, 8 or 32 floats.
REDUCTIONS = {"WholeReduceSum": 64, "BlockReduceSum": 8, "PairReduceSum": 8}


@pytest.fixture(scope="module")
def checked():
    return Device(build_tree.build("sim_test_kernels_checked"))


def run(device, kernel, params, inputs, out):
    """True when the launch reports that unwritten memory reaches its output."""
    try:
        device.run(kernel, params, inputs=inputs, out=out)
    except DeviceError as error:
        assert "\nunwritten memory reaches an output\n" in str(error), error
        assert ": 1 finding\n" in str(error), error
        return True
    return False


@st.composite
def lane_params(draw, name):
    repeats = draw(st.integers(1, 5))
    pattern = draw(st.booleans())
    mask = draw(st.integers(1, 64))
    bits = draw(st.integers(1, 2**64 - 1))
    block = [draw(st.integers(1, 3)), *(draw(st.integers(0, 3)) for _ in range(2))]
    repeat = [draw(st.integers(8, 24)), *(draw(st.integers(0, 24)) for _ in range(2))]
    if name in REDUCTIONS:
        repeat[0] = draw(st.integers(1, 24 if name == "WholeReduceSum" else 3))
    # Whole tensors, or stretches of them.
    stretches = [(tensor, 0, FLOATS) for tensor in range(3) if draw(st.booleans())]
    for _ in range(draw(st.integers(0, 9))):
        first = draw(st.integers(0, 140)) * 8
        stretches.append((draw(st.integers(0, 2)), first, draw(st.integers(1, 300))))
    head = [NAMES.index(name), int(pattern), mask, bits, repeats, *block, *repeat]
    return head, [len(stretches), 0, 0, *np.ravel(stretches).astype(int)]


@pytest.mark.parametrize("name", NAMES)
def test_lanes(checked, name):
    @settings(max_examples=60, deadline=None)
    @given(lane_params(name), st.randoms(use_true_random=False))
    def judge(params, chance):
        head, stretches = params
        rng = np.random.default_rng(chance.randrange(2**32))
        if name == "Gather":
            table = rng.integers(0, FLOATS, FLOATS, np.int32) * 4
        else:
            table = rng.integers(-(2**31), 2**31, FLOATS, np.int64).astype(np.int32)
        out = np.zeros(FLOATS, np.float32)
        reported = run(
            checked, "unwritten_lanes", [*head, 0, FLOATS // 8, *stretches], [table], out
        )
        unwritten = np.isnan(out.view(np.float16) if name == "CastToHalf" else out)
        assert reported == unwritten.any()
        blocks = unwritten.reshape(FLOATS // 8, -1).any(axis=1)
        # The blocks where it changes, and any others.
        edges = np.flatnonzero(blocks[1:] != blocks[:-1])
        some = [*edges[:3], *(edges[:3] + 1), *rng.integers(0, FLOATS // 8, 3)]
        for block in some:
            reported = run(checked, "unwritten_lanes", [*head, block, 1, *stretches], [table], out)
            assert reported == blocks[block], block

    judge()


@st.composite
def product_params(draw):
    whole = st.sampled_from([16, 32])
    m, n = draw(st.one_of(whole, st.integers(2, 32))), draw(st.one_of(whole, st.integers(1, 32)))
    k = draw(st.integers(1, 48))

    # What is copied: everything, what is needed, or anything.
    def part(limit, need):
        return draw(st.one_of(st.just(limit), st.just(need), st.integers(1, limit)))

    left, right = (part(32, m), part(48, k)), (part(48, k), part(32, n))
    return [
        *left,
        *right,
        m,
        n,
        k,
        draw(st.integers(1, 2)),
        draw(st.sampled_from([m, 1, (m + 15) & 48])),
    ]


def rounded(columns):
    return (columns + 15) // 16 * 16


@settings(max_examples=300, deadline=None)
@given(params=product_params(), result=st.integers(0, 3))
def test_products(checked, params, result):
    rows, columns, deep, wide, m, n, k, _, stored = params
    # Copies to L1 fill their last 32 bytes with zeros.
    operands = rows < m or rounded(columns) < k or deep < k or rounded(wide) < n
    # Fixpipe stores whole columns of 16; Mmad wrote n, and m rows.
    beyond = n % 16 != 0 or stored > m
    ones = [np.ones((32, 48), np.float16), np.ones((48, 32), np.float16)]
    out = np.zeros((32, 32), BF16 if result == 1 else np.float32)
    text = ""
    try:
        checked.run("unwritten_product", [*params, result], inputs=ones, out=out)
    except DeviceError as error:
        text = str(error)
    assert ("\nunwritten memory in a matrix product\n" in text) == operands, text
    assert ("\nunwritten memory reaches an output\n" in text) == beyond, text
    assert np.isnan(out.astype(np.float32)).any() <= (operands or beyond)
