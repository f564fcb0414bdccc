# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_finalize with k, h and dh as pairs of bf16 numbers."""

import dataclasses

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import bwd_cases, finalize_runs, stage_runs, test_packed, test_state_v_first
from tests.stages.finalize_runs import OP, check, expected, fresh, head_major
from tests.support import inputs
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import round_bf16, to_bf16
from tests.support.metrics import relative_l2

LOWS = {"k_low": "k_hat", "h_low": "h", "dh_low": "dh"}  # of which cache


def with_lows(case, seed=0, names=tuple(LOWS)):
    """The same case, in which some caches have low halves of the size that rounding leaves."""
    rng = np.random.default_rng(seed)
    for name in names:
        high = case.cache[LOWS[name]]
        left = rng.uniform(-case.io.epsilon, case.io.epsilon, high.shape)
        case.cache[name] = case.io.round(high * left)
    return case


def arguments(case, *layouts, **changes):
    lows = {name: case.io.array(case.cache[name]) for name in LOWS if name in case.cache}
    return finalize_runs.arguments(case, *layouts, **{**lows, **changes})


def wanted(case, **changes):
    """float64, from the sums of the halves."""
    sums = {
        high: np.float64(case.cache[high]) + case.cache[low]
        for low, high in LOWS.items()
        if low in case.cache
    }
    return expected(dataclasses.replace(case, cache={**case.cache, **sums}), **changes)


@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
def test_lengths_and_layouts(lib, tokens, layout):
    case = with_lows(fresh(batch=2, tokens=tokens, initial_state=True))
    got = lib.call(OP, **arguments(case, layout, layout))
    check(head_major(got, layout), wanted(case), case)


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
@pytest.mark.parametrize("use_exp2", (True, False))
def test_gates(lib, gate, use_exp2):
    case = with_lows(fresh(tokens=130, gate=gate, use_exp2=use_exp2, initial_state=True))
    got = lib.call(OP, **arguments(case))
    check(head_major(got), {n: x for n, x in wanted(case).items() if x is not None}, case)


@pytest.mark.parametrize("names", (("k_low",), ("h_low", "dh_low")))
def test_each_of_them_alone(lib, names):
    case = with_lows(fresh(tokens=100, key_heads=4, initial_state=True), names=names)
    check(head_major(lib.call(OP, **arguments(case))), wanted(case), case)


@pytest.mark.parametrize("name", tuple(LOWS))
def test_a_low_half_of_zero_changes_nothing(lib, name):
    case = fresh(heads=2, tokens=100, initial_state=True)
    plain = lib.call(OP, **finalize_runs.arguments(case))
    if name == "k_low":
        case.cache[name] = np.zeros_like(case.cache["k_hat"])
        got = lib.call(OP, **arguments(case))
        assert stage_runs.bits(got) == stage_runs.bits(plain)
        return
    case = with_lows(case, names=("h_low", "dh_low"))
    got = lib.call(OP, **arguments(case))
    assert stage_runs.bits(got) != stage_runs.bits(plain)
    case.cache[name][...] = 0
    check(head_major(lib.call(OP, **arguments(case))), wanted(case), case)


def mirrored(shape, seed):
    """Numbers whose sum over the last axis is exactly zero, but not those of a half of it."""
    half = np.random.default_rng(seed).standard_normal(shape[:-1] + (shape[-1] // 2,))
    return round_bf16(np.concatenate([half, -half], -1))


@pytest.mark.parametrize("tokens", (1, 65))
def test_what_is_left_when_the_high_halves_cancel(lib, tokens):
    """dh and dv_scan are constant and sums over the channels of v and h are zero: products of them
    consist of the low halves alone."""
    case = with_lows(bwd_cases.make(7, tokens=tokens, heads=8, initial_state=True))
    cache = case.cache
    case.x.v = mirrored(case.x.v.shape, 1)
    cache["h"] = mirrored(cache["h"].shape, 2)
    for name in ("dh", "dv_scan"):
        cache[name] = np.ones_like(cache[name])
    for name in ("d_aqk", "dq_raw"):
        cache[name] = np.zeros_like(cache[name])
    case = with_lows(case, 3)
    want = wanted(case)
    got = head_major(lib.call(OP, **arguments(case)))
    plain = head_major(lib.call(OP, **finalize_runs.arguments(case)))
    for name in ("dk", "dg", "ddt_bias"):
        error = relative_l2(got[name], want[name])
        assert error < 0.02, (name, error)
        assert relative_l2(plain[name], want[name]) > 0.2, name


def test_values_first(lib):
    """The K-first run's bits."""
    case = with_lows(fresh(heads=3, batch=2, tokens=130, initial_state=True))
    test_state_v_first.assert_transposed(lib, OP, arguments(case))


def test_packed_sequences(lib):
    for case in ("tails and empty ones", "640 and 783"):
        cu_seqlens = inputs.packed(test_packed.LENGTHS[case])
        test_packed.assert_as_dense(
            lib, table.BWD_FINALIZE, cu_seqlens, pairs=True, value_heads=4, key_heads=2
        )


def test_same_bits_on_any_machine(lib):
    case = with_lows(bwd_cases.make(1, batch=2, tokens=200, heads=3))
    stage_runs.assert_same_bits(lib, OP, **arguments(case, "BSND", "BSND"))


@pytest.mark.parametrize("name", tuple(LOWS))
def test_nan_stays_in_its_head(lib, name):
    call = arguments(with_lows(bwd_cases.make(3, batch=2, tokens=70, heads=2)))
    clean = lib.call(OP, **call)
    spoiled = {**call, name: call[name].copy()}
    spoiled[name][(0, 1, 3) if name == "k_low" else (0, slice(None), 1)] = np.nan
    with lib.cores(1):  # every task runs through the same buffers
        got = lib.call(OP, **spoiled)
    assert np.isnan(got.f32("dk")).any()
    for output in ("dq", "dk", "dv", "dbeta", "dg"):
        stage_runs.assert_contained(clean[output], got[output], (0, 1))


@pytest.mark.parametrize("tokens", (65, 128))
def test_instruction_counts(lib, tokens):
    case = with_lows(bwd_cases.make(2, tokens=tokens, heads=2))
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    rows = bwd_cases.chunk_rows(tokens)

    def more(r):
        n = bwd_cases.mmad_rows(r)
        return 2 * 128**3 + 2 * n * 128 * 128 + n * r * 128

    assert counters["mmad_macs"] == 2 * sum(finalize_runs.macs(r) + more(r) for r in rows)
    assert counters["scalar_reads"] + counters["scalar_writes"] == 0


def test_refusals(lib):
    case = with_lows(bwd_cases.make(4, tokens=16, heads=2))
    for change, message in [
        ({"h_low": None}, "h_low and dh_low: expected both or none, got only dh_low"),
        ({"dh_low": None}, "h_low and dh_low: expected both or none, got only h_low"),
        ({"k_low": to_bf16(np.zeros((1, 2, 17, 128)))}, "k_low: expected shape"),
        ({"h_low": to_bf16(np.zeros((1, 2, 2, 128, 128)))}, "h_low: expected shape"),
    ]:
        with pytest.raises(AclnnError) as failure:
            lib.call(OP, **arguments(case, **change))
        assert message in failure.value.message
    check(head_major(lib.call(OP, **arguments(case))), wanted(case), case)
