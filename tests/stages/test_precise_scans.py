# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The state scans with kg as a pair of bf16 numbers: states, v_new and kg then are pairs, too."""

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import scan_cases, stage_runs, test_bwd_dhu, test_fwd_h, test_packed
from tests.support import inputs, reference
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import to_bf16
from tests.support.io_types import BFLOAT16
from tests.support.metrics import relative_l2

MODULES = pytest.mark.parametrize("module", [test_fwd_h, test_bwd_dhu], ids=["fwd_h", "bwd_dhu"])
# Relative L2 of what a pair holds, where its low half is a normal number; measured: up to 9e-6.
PAIR = 2e-5
FLIPS = 6e-4  # of a rounded result, where a few values round the other way; 1.7e-3 without pairs
# Both for bfloat16; float16 has an eighth of them.
LOW = {test_fwd_h: "h_low", test_bwd_dhu: "dh_low"}


def make(seed, float_u=True, draw=False, **sizes):
    """A scan case, what bf16 left of its kg, and u in fp32."""
    case = scan_cases.draw(seed, **sizes) if draw else scan_cases.make(seed, **sizes)
    rng = np.random.default_rng(seed)
    epsilon = case.io.epsilon
    case.kg_low = case.io.round(case.kg * rng.uniform(-epsilon, epsilon, case.kg.shape))
    if float_u:
        case.u = np.float32(case.u * rng.uniform(1 - epsilon, 1 + epsilon, case.u.shape))
    return case


def arguments(module, case, state=None, **attributes):
    """Of a precise run; state is where the scan starts."""
    given = module.arguments(case, state, **attributes)
    if module is test_fwd_h:
        given["u"] = case.u
    given["k_low"] = case.io.array(case.kg_low)
    name = LOW[module]
    given["outputs"] = {**given["outputs"], name: given["outputs"][name.removesuffix("_low")]}
    return given


def error(case, got, want, floor=0.0):
    """Relative L2 in units of bfloat16's rounding."""
    return relative_l2(got, want, floor) * BFLOAT16.epsilon / case.io.epsilon


def whole(case):
    return np.float64(case.kg) + case.kg_low


def check_forward(got, case, initial=None):
    h, v_new, final = reference.fwd_h(
        whole(case), case.w, case.u, gk=case.gk, initial_state=initial
    )
    if h.any():
        assert error(case, got.f32("h").astype(float) + got.f32("h_low"), h, case.io.tiny) < PAIR
    assert error(case, got.f32("v_new"), case.io.round(v_new)) < FLIPS
    if "final_state" in got:
        assert error(case, got["final_state"], final) < PAIR


def check_backward(got, case, dht=None):
    """dv_scan is rounded, and the gradients of the states before it follow from what it then is."""
    scale = np.float64(np.float32(case.scale))
    batch, heads, tokens = case.shape
    state = np.zeros((batch, heads, 128, 128)) if dht is None else np.float64(dht)
    dv_scan, pairs = got.f32("dv_scan").astype(float), got.f32("dh").astype(float)
    pairs = pairs + got.f32("dh_low")
    for chunk in reversed(reference.chunks(batch, tokens)):
        at = (chunk.batch, slice(None), slice(chunk.start, chunk.stop))
        before = state[chunk.batch]
        if before.any():
            assert error(case, pairs[chunk.batch, chunk.slot], before, case.io.tiny) < PAIR
        y = case.dv[at] + whole(case)[at] @ before
        assert error(case, dv_scan[at], case.io.round(y)) < FLIPS
        state[chunk.batch] = (
            np.exp2(case.gk[chunk.batch, :, chunk.stop - 1, :, None]) * before
            + scale * np.swapaxes(case.qg[at], -1, -2) @ case.d_o[at]
            - np.swapaxes(case.w[at], -1, -2) @ dv_scan[at]
        )
    if "dh0" in got:
        assert error(case, got["dh0"], state) < PAIR


def check(module, got, case, state=None):
    (check_forward if module is test_fwd_h else check_backward)(got, case, state)


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("with_state", [False, True])
@stage_runs.IO
@MODULES
def test_against_float64(lib, module, tokens, with_state, io):
    case = make(tokens, batch=2, tokens=tokens, heads=3, io=io)
    state = case.state if with_state else None
    check(module, lib.call(module.OP, **arguments(module, case, state)), case, state)
    last = {"final": False} if module is test_fwd_h else {"with_h0": False}
    check(module, lib.call(module.OP, **arguments(module, case, state, **last)), case, state)


@pytest.mark.parametrize("decay", ["lasting", "strong", "mixed"])
@stage_runs.IO
@MODULES
def test_decays(lib, module, decay, io):
    case = make(3, tokens=1000, heads=2, decay=decay, io=io)
    check(module, lib.call(module.OP, **arguments(module, case, case.state)), case, case.state)


@pytest.mark.parametrize("heads", [1, 13, 30])
@MODULES
def test_slicings(lib, module, heads):
    case = make(heads, draw=True, tokens=130, heads=heads)
    check(module, lib.call(module.OP, **arguments(module, case)), case)


@pytest.mark.parametrize("tokens", [1, 65, 200])
def test_u_in_fp32_alone(lib, tokens):
    """It does not need the low half of kg; bf16 u does not forbid it."""
    case = make(tokens, tokens=tokens)
    given = arguments(test_fwd_h, case, case.state)
    outputs = {**given["outputs"], "h_low": None}
    got = lib.call(test_fwd_h.OP, **{**given, "k_low": None, "outputs": outputs})
    test_fwd_h.check(got, case, case.state)

    case = make(tokens, float_u=False, tokens=tokens)
    given = arguments(test_fwd_h, case, case.state)
    check_forward(lib.call(test_fwd_h.OP, **{**given, "u": to_bf16(case.u)}), case, case.state)


@pytest.mark.parametrize("tokens", [1, 65, 200])
@stage_runs.IO
@MODULES
def test_the_low_half_is_what_rounding_leaves(lib, module, tokens, io):
    case = make(tokens, tokens=tokens, io=io)
    got = lib.call(module.OP, **arguments(module, case, case.state))
    high, low = (got.f32(name) for name in (LOW[module].removesuffix("_low"), LOW[module]))
    # A high half below the normal numbers leaves up to tiny, which rounds to zero.
    assert (np.abs(low) <= np.maximum(np.abs(high) * io.epsilon, io.tiny)).all()
    assert (low != 0)[np.abs(high) > 64 * io.tiny / io.epsilon].mean() > 0.9


@MODULES
def test_same_bits_on_any_machine(lib, module):
    case = make(7, draw=True, batch=3, tokens=150, heads=3)
    stage_runs.assert_same_bits(lib, module.OP, **arguments(module, case, case.state))


@MODULES
def test_packed_sequences(lib, module):
    stage = next(stage for stage in table.STAGES if stage.op == module.OP)
    for case in ("tails and empty ones", "640 and 783"):
        cu_seqlens = inputs.packed(test_packed.LENGTHS[case])
        test_packed.assert_as_dense(lib, stage, cu_seqlens, pairs=True)


@MODULES
def test_nan_stays_in_its_head(lib, module):
    case = make(8, draw=True, batch=2, tokens=70, heads=4)
    with lib.cores(1):
        want = lib.call(module.OP, **arguments(module, case, case.state))
        case.kg_low[1, 1, 63 if module is test_fwd_h else 69] = np.nan  # of its first chunk
        got = lib.call(module.OP, **arguments(module, case, case.state))
    low = LOW[module]
    assert np.isnan(got.f32(low)).any()
    stage_runs.assert_contained(np.swapaxes(want[low], 1, 2), np.swapaxes(got[low], 1, 2), (1, 1))


@pytest.mark.parametrize("tokens", [1, 64, 200])
@MODULES
def test_counters(lib, module, tokens):
    """Three products for one where both operands are pairs, two where one is."""
    case = make(9, draw=True, batch=2, tokens=tokens, heads=3)
    _, counters = stage_runs.counted(lib, module.OP, **arguments(module, case, case.state))
    steps = scan_cases.rows(tokens)
    project = sum((16 if r == 1 else r) * 128 * 128 for r in steps)
    update = sum(128 * r * 128 for r in steps)
    macs = 2 * project + 3 * update if module is test_fwd_h else 3 * project + 2 * update
    assert counters["mmad_macs"] == 6 * macs
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] == counters["scalar_writes"] == 0


@MODULES
def test_refusals(lib, module):
    case = make(10, draw=True, tokens=10)
    good = arguments(module, case)
    low = LOW[module]
    for change, message in [
        ({"k_low": None}, f"{low}: expected exactly when k_low is given, got one without k_low"),
        (
            {"outputs": {**good["outputs"], low: None}},
            f"{low}: expected exactly when k_low is given, got k_low alone",
        ),
        ({"k_low": good["k_low"][:, :, 1:].copy()}, "k_low: expected shape [1, 2, 10, 128]"),
        ({"k_low": good["gk"]}, "k_low"),
    ]:
        with pytest.raises(AclnnError) as failure:
            lib.call(module.OP, **{**good, **change})
        assert message.replace("k_low", "kLow") in failure.value.message or (
            message in failure.value.message
        )
    check(module, lib.call(module.OP, **good), case)
