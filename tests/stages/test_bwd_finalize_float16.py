# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_finalize with float16 in the place of bfloat16: pairs go by levels under every gate."""

import numpy as np
import pytest

from tests.stages import (
    bwd_cases,
    finalize_runs,
    float16_range,
    stage_runs,
    test_precise_finalize,
    test_state_v_first,
)
from tests.stages.finalize_runs import OP, arguments, expected, head_major, macs
from tests.support import inputs, metrics
from tests.support.aclnn import AclnnError
from tests.support.io_types import BFLOAT16, FLOAT16, IO_TYPES

FP32 = np.dtype(np.float32)
LIMITS = stage_runs.limits(finalize_runs.LIMITS, FLOAT16)
# The decay from one token to the next is below what float16 can tell from zero, and so is what the
# pair of them gives the gate. Measured: up to 0.13.
FADED = LIMITS | dict(dg=0.3, da_log=0.3, ddt_bias=0.3)
ROWS = ("dq", "dk", "dv", "dbeta", "dg")
DECAYS = tuple((gate, decay) for gate in inputs.GATES for decay in inputs.GATES[gate])


def fresh(**options):
    return finalize_runs.fresh(io=FLOAT16, **options)


def check(got, want, case, limits=LIMITS, floor=0.0):
    for name, value in got.items():
        assert np.all(np.isfinite(value)), name
    finalize_runs.check(got, want, case, limits, floor)


def run(lib, case, input_layout="BNSD", output_layout="BNSD", gate_type=FP32, **checks):
    got = lib.call(OP, **arguments(case, input_layout, output_layout, gate_type))
    check(head_major(got, output_layout), expected(case), case, **checks)


@pytest.mark.parametrize(("gate", "decay"), DECAYS)
def test_gates(lib, gate, decay):
    case = fresh(tokens=129, gate=gate, decay=decay, initial_state=True)
    run(lib, case, "BSND", "BSND", limits=FADED if decay == "extreme" else LIMITS)


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_a_gate_in_float16(lib, gate):
    """dg, too, is float16 then, and may lie below its normal numbers."""
    run(lib, fresh(tokens=129, gate=gate), gate_type=FLOAT16.dtype, floor=FLOAT16.tiny)


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
def test_lengths_and_layouts(lib, tokens, layout):
    run(lib, fresh(batch=2, tokens=tokens, initial_state=True), layout, layout)


@pytest.mark.parametrize("l2norm", (True, False))
@pytest.mark.parametrize("beta", ("sigmoid", "unit", "neg_eigval"))
@pytest.mark.parametrize("keys", inputs.KEYS)
def test_norm_beta_and_keys(lib, l2norm, beta, keys):
    run(lib, fresh(tokens=100, l2norm=l2norm, beta=beta, keys=keys))


@pytest.mark.parametrize("loss", inputs.LOSSES)
@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_losses_and_gk_in_nats(lib, gate, loss):
    run(lib, fresh(tokens=100, gate=gate, loss=loss, use_exp2=False, initial_state=True))


@pytest.mark.parametrize(("key_heads", "heads"), ((1, 2), (2, 6), (1, 8)))
@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_grouped_heads(lib, gate, key_heads, heads):
    run(lib, fresh(tokens=90, heads=heads, key_heads=key_heads, gate=gate, decay="mixed"))


@pytest.mark.parametrize("tokens", (1, 65, 200))
@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_pairs(lib, tokens, gate):
    """k, h and dh as pairs of float16 numbers."""
    case = test_precise_finalize.with_lows(fresh(tokens=tokens, gate=gate, initial_state=True))
    got = lib.call(OP, **test_precise_finalize.arguments(case, gate_type=FP32))
    check(head_major(got), test_precise_finalize.wanted(case), case)


@pytest.mark.parametrize("tokens", (1, 64, 150))
def test_values_first(lib, tokens):
    """The K-first run's bits."""
    case = test_precise_finalize.with_lows(fresh(tokens=tokens, initial_state=True))
    test_state_v_first.assert_transposed(lib, OP, arguments(case))
    test_state_v_first.assert_transposed(lib, OP, test_precise_finalize.arguments(case))


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_errors_fall_by_the_three_bits(lib, gate):
    """Which is a factor of eight."""
    error = {}
    for io in IO_TYPES:
        case = bwd_cases.make(31, tokens=200, heads=8, gate=gate, decay="mixed", io=io)
        got, want = head_major(lib.call(OP, **arguments(case, gate_type=FP32))), expected(case)
        error[io] = {name: metrics.relative_l2(got[name], want[name]) for name in ROWS}
    for name in ROWS:
        assert error[FLOAT16][name] < error[BFLOAT16][name] / 6, (name, error)


@pytest.mark.parametrize("upstream", float16_range.WHOLE)
def test_magnitudes_of_upstream_gradients(lib, upstream):
    """From where dq begins to lose digits to where the state's products overflow."""
    for gate, decay in float16_range.GATES:
        case = fresh(tokens=129, gate=gate, decay=decay, initial_state=True, upstream=upstream)
        run(lib, case)


@pytest.mark.parametrize("upstream", float16_range.FADING)
def test_small_upstream_gradients_cost_no_more_than_rounding_the_results(lib, upstream):
    """dq, dk and dv are below float16's normal numbers, the fp32 results are as good as ever."""
    for gate, decay in float16_range.GATES:
        case = fresh(tokens=129, gate=gate, decay=decay, initial_state=True, upstream=upstream)
        got, want = head_major(lib.call(OP, **arguments(case, gate_type=FP32))), expected(case)
        rounded = {name: got.pop(name) for name in float16_range.ROUNDED}
        check(rounded, {name: want.pop(name) for name in rounded}, case, floor=FLOAT16.tiny)
        check(got, want, case)


def test_too_large_upstream_gradients_show(lib):
    """An overflow of an operand ends up in the results as a number that is not finite."""
    case = fresh(tokens=129, initial_state=True, upstream=2.0**13)
    got = head_major(lib.call(OP, **arguments(case, gate_type=FP32)))
    for name in ("dk", "dg", "ddt_bias"):
        assert not np.all(np.isfinite(got[name])), name


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_same_bits_on_any_core_and_thread_count(lib, gate):
    case = bwd_cases.make(32, batch=2, tokens=130, heads=4, key_heads=2, gate=gate, io=FLOAT16)
    stage_runs.assert_same_bits(lib, OP, **arguments(case))


NAN_INPUTS = ("q", "k", "v", "gk", "raw_g", "beta", "akk", "h", "dh", "dv_scan", "d_aqk", "dq_raw")


@pytest.mark.parametrize("name", NAN_INPUTS)
def test_nan_stays_in_its_head(lib, name):
    call = arguments(bwd_cases.make(33, batch=2, tokens=70, heads=2, io=FLOAT16))
    clean = lib.call(OP, **call)
    spoiled = {**call, name: call[name].copy()}
    spoiled[name][(0, slice(None), 1) if name in ("h", "dh") else (0, 1)] = np.nan
    with lib.cores(1):
        got = lib.call(OP, **spoiled)
    for output in ("dq", "dk", "dv", "dbeta", "dg"):
        stage_runs.assert_contained(clean[output], got[output], (0, 1))


@pytest.mark.parametrize("tokens", (65, 128, 200))
def test_instruction_counts(lib, tokens):
    """Those of a gate without a bound."""
    case = bwd_cases.make(34, tokens=tokens, heads=2, io=FLOAT16)
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    rows = bwd_cases.chunk_rows(tokens)
    assert counters["mmad_macs"] == 2 * sum(macs(r, bounded=False) for r in rows)
    assert counters["scalar_reads"] + counters["scalar_writes"] <= 4 * 2 * len(rows)


OTHERS = ("k", "v", "akk", "v_new", "h", "dh", "dv_scan", "k_low", "h_low", "dh_low")


@pytest.mark.parametrize("io", IO_TYPES, ids=str)
def test_all_caches_have_the_type_of_q(lib, io):
    case = test_precise_finalize.with_lows(bwd_cases.make(35, tokens=16, heads=2, io=io))
    call = test_precise_finalize.arguments(case)
    other = BFLOAT16 if io.is_half else FLOAT16
    lib.call(OP, **call)
    wrong = {name: {name: other.array(call[name])} for name in (*OTHERS, "raw_g")}
    for name in ("dq", "dk", "dv"):
        changed = {**call["outputs"], name: (call["outputs"][name][0], other.dtype)}
        wrong[name] = {"outputs": changed}
    for change in wrong.values():
        with pytest.raises(AclnnError, match="no supported combination"):
            lib.call(OP, **{**call, **change})
    lib.call(OP, **call)
