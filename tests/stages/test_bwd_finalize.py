# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_finalize on the simulator against the float64 reference."""

import numpy as np
import pytest

from tests.stages import bwd_cases, stage_runs
from tests.stages.finalize_runs import OP, arguments, check, expected, fresh, head_major, macs
from tests.support import inputs
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import BF16


@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
def test_lengths_and_layouts(lib, tokens, layout):
    case = fresh(batch=2, tokens=tokens, initial_state=True)
    got = lib.call(OP, **arguments(case, layout, layout))
    check(head_major(got, layout), expected(case), case)


@pytest.mark.parametrize("decay", tuple(inputs.DECAYS))
@pytest.mark.parametrize("loss", inputs.LOSSES)
@pytest.mark.parametrize("gate_type", (BF16, np.dtype(np.float32)), ids=("bf16", "fp32"))
def test_decay_loss_and_gate_type(lib, decay, loss, gate_type):
    case = fresh(tokens=129, decay=decay, loss=loss, initial_state=True)
    got = lib.call(OP, **arguments(case, "BSND", "BNSD", gate_type))
    check(head_major(got), expected(case), case)


@pytest.mark.parametrize("l2norm", (True, False))
@pytest.mark.parametrize("beta", ("sigmoid", "unit"))
@pytest.mark.parametrize("keys", inputs.KEYS)
def test_norm_beta_and_keys(lib, l2norm, beta, keys):
    case = fresh(tokens=100, l2norm=l2norm, beta=beta, keys=keys)
    got = lib.call(OP, **arguments(case, "BNSD", "BSND"))
    check(head_major(got, "BSND"), expected(case), case)


def test_a_token_pitch_that_no_copy_parameter_holds(lib):
    """520 heads of 128: 66,560 elements from token to token, more than Nd2Nz's 16 bits."""
    case = bwd_cases.make(6, tokens=3, heads=520)
    got = lib.call(OP, **arguments(case, "BSND", "BSND"))
    check(head_major(got, "BSND"), expected(case), case)


def test_without_dt_bias(lib):
    case = fresh(tokens=80)
    got = lib.call(OP, **arguments(case, dt_bias=None))
    case.x.dt_bias[:] = 0  # gk need not belong to the gate for the stage alone
    check(head_major(got), expected(case), case)


def test_negative_eigenvalues(lib):
    case = fresh(tokens=80)
    got = lib.call(OP, **arguments(case, allow_neg_eigval=True))
    check(head_major(got), expected(case, allow_neg_eigval=True), case)


def test_same_bits_on_any_core_and_thread_count(lib):
    case = bwd_cases.make(1, batch=2, tokens=200, heads=3)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, "BSND", "BSND"))


@pytest.mark.parametrize("tokens", (65, 128, 200))
def test_instruction_counts(lib, tokens):
    case = bwd_cases.make(2, tokens=tokens, heads=2)
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    rows = bwd_cases.chunk_rows(tokens)
    tasks = 2 * len(rows)
    print(counters)
    assert counters["mmad_macs"] == 2 * sum(macs(r) for r in rows)
    if tokens == 128:
        assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] + counters["scalar_writes"] <= 4 * tasks


NAN_INPUTS = ("q", "k", "v", "gk", "raw_g", "beta", "akk", "h", "dh", "dv_scan", "d_aqk", "dq_raw")


@pytest.mark.parametrize("name", NAN_INPUTS)
def test_nan_stays_in_its_head(lib, name):
    case = bwd_cases.make(3, batch=2, tokens=70, heads=2)
    call = arguments(case)
    clean = lib.call(OP, **call)
    spoiled = {**call, name: call[name].copy()}
    spoiled[name][(0, slice(None), 1) if name in ("h", "dh") else (0, 1)] = np.nan
    with lib.cores(1):  # every task runs through the same buffers
        got = lib.call(OP, **spoiled)
    for output in ("dq", "dk", "dv", "dbeta", "dg"):
        stage_runs.assert_contained(clean[output], got[output], (0, 1))
    for output in ("da_log", "ddt_bias"):
        assert clean[output][0].tobytes() == got[output][0].tobytes()


def test_no_tokens_give_zero_parameter_gradients(lib):
    x = inputs.make_inputs(5, tokens=1, heads=3)
    cache = {}
    for name in ("q_hat", "k_hat", "v_new", "dv_scan", "gk", "dq_raw"):
        cache[name] = np.zeros((2, 3, 0, 128), np.float32)
    for name in ("akk", "d_aqk"):
        cache[name] = np.zeros((2, 3, 0, 64), np.float32)
    for name in ("h", "dh"):
        cache[name] = np.zeros((2, 0, 3, 128, 128), np.float32)
    for name in ("q_rstd", "k_rstd", "beta_eff"):
        cache[name] = np.zeros((2, 3, 0), np.float32)
    x.v, x.g = cache["v_new"], cache["gk"]
    got = lib.call(OP, **arguments(bwd_cases.BwdCase(x, cache), "BSND", "BSND"))
    assert not got["da_log"].any()
    assert not got["ddt_bias"].any()


def test_refusals_name_the_argument(lib):
    case = bwd_cases.make(4, tokens=16, heads=2)
    batch, _, tokens = case.shape
    wrong = {
        "lower_bound": dict(lower_bound=-6.0),
        "allow_neg_eigval": dict(allow_neg_eigval=True, use_beta_sigmoid_in_kernel=False),
        "input_layout": dict(input_layout="TND"),
        "cu_seqlens": dict(cu_seqlens=(0, 16)),
        "a_log": dict(a_log=None),
        "k_rstd": dict(k_rstd=None),
        "dt_bias": dict(dt_bias=np.zeros((3, 128), np.float32)),
        "gk": dict(gk=bwd_cases.placed_bf16(case.cache["gk"])),
        "heads": {
            name: np.repeat(bwd_cases.placed_bf16(case.cache[f"{name}_hat"]), 2, axis=1)
            for name in ("q", "k")
        },
    }
    for name, change in wrong.items():
        with pytest.raises(AclnnError, match=name):
            lib.call(OP, **arguments(case, **change))
    lib.call(OP, **arguments(case))
