# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_finalize with every kind of gate, unit of gk and order of the state's axes."""

import numpy as np
import pytest

from tests.stages import bwd_cases, stage_runs
from tests.stages.finalize_runs import (
    OP,
    PARAMETERS,
    arguments,
    check,
    expected,
    fresh,
    head_major,
    macs,
)
from tests.support import inputs
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import BF16

FP32 = np.dtype(np.float32)


def run(lib, case, input_layout="BNSD", output_layout="BNSD", gate_type=FP32):
    got = lib.call(OP, **arguments(case, input_layout, output_layout, gate_type))
    got = head_major(got, output_layout)
    for name, value in got.items():
        assert np.all(np.isfinite(value)), name
    check(got, expected(case), case)


UNBOUNDED = tuple(
    (gate, decay) for gate in ("softplus", "activated") for decay in inputs.GATES[gate]
)


@pytest.mark.parametrize(("gate", "decay"), UNBOUNDED)
@pytest.mark.parametrize("gate_type", (BF16, FP32), ids=("bf16", "fp32"))
def test_unbounded_gates(lib, gate, decay, gate_type):
    """From no decay at all to 50 nats a token, everywhere or on some tokens and channels."""
    case = fresh(tokens=129, gate=gate, decay=decay, initial_state=True)
    run(lib, case, "BSND", "BSND", gate_type)


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
def test_lengths_of_unbounded_gates(lib, tokens):
    run(lib, fresh(batch=2, tokens=tokens, gate="activated", decay="mixed", initial_state=True))


@pytest.mark.parametrize("loss", inputs.LOSSES)
@pytest.mark.parametrize("keys", inputs.KEYS)
@pytest.mark.parametrize(("gate", "decay"), (("softplus", "mixed"), ("activated", "steps")))
def test_losses_and_keys_of_unbounded_gates(lib, gate, decay, keys, loss):
    run(lib, fresh(tokens=100, gate=gate, decay=decay, keys=keys, loss=loss, initial_state=True))


@pytest.mark.parametrize(("key_heads", "heads"), ((1, 2), (2, 6), (1, 8)))
@pytest.mark.parametrize("gate", ("softplus", "activated"))
def test_grouped_heads(lib, gate, key_heads, heads):
    run(lib, fresh(tokens=90, heads=heads, key_heads=key_heads, gate=gate, decay="mixed"))


@pytest.mark.parametrize("gate", ("softplus", "activated"))
def test_same_bits_on_any_core_and_thread_count(lib, gate):
    case = bwd_cases.make(24, batch=2, tokens=130, heads=4, key_heads=2, gate=gate, decay="mixed")
    stage_runs.assert_same_bits(lib, OP, **arguments(case))


NAN_INPUTS = ("q", "k", "v", "gk", "raw_g", "beta", "akk", "h", "dh", "dv_scan", "d_aqk", "dq_raw")


@pytest.mark.parametrize("name", NAN_INPUTS)
def test_nan_stays_in_its_head(lib, name):
    case = bwd_cases.make(25, batch=2, tokens=70, heads=2, gate="activated", decay="mixed")
    call = arguments(case)
    clean = lib.call(OP, **call)
    spoiled = {**call, name: call[name].copy()}
    spoiled[name][(0, slice(None), 1) if name in ("h", "dh") else (0, 1)] = np.nan
    with lib.cores(1):
        got = lib.call(OP, **spoiled)
    for output in ("dq", "dk", "dv", "dbeta", "dg"):
        stage_runs.assert_contained(clean[output], got[output], (0, 1))


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_gk_in_nats(lib, gate):
    run(lib, fresh(tokens=100, gate=gate, use_exp2=False, initial_state=True))


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
def test_beta_up_to_two(lib, gate):
    run(lib, fresh(tokens=100, gate=gate, beta="neg_eigval"))


@pytest.mark.parametrize("tokens", (65, 128, 200))
def test_instruction_counts(lib, tokens):
    case = bwd_cases.make(26, tokens=tokens, heads=2, gate="activated")
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    rows = bwd_cases.chunk_rows(tokens)
    assert counters["mmad_macs"] == 2 * sum(macs(r, bounded=False) for r in rows)
    if tokens == 128:
        assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] + counters["scalar_writes"] <= 4 * 2 * len(rows)


def test_softplus_without_dt_bias(lib):
    case = fresh(tokens=80, gate="softplus")
    got = lib.call(OP, **arguments(case, dt_bias=None))
    case.x.dt_bias[:] = 0  # gk need not belong to the gate for the stage alone
    check(head_major(got), expected(case), case)


@pytest.mark.parametrize("gate", ("safe", "softplus"))
def test_flat_dt_bias_gives_the_same_bits(lib, gate):
    call = arguments(bwd_cases.make(21, tokens=70, gate=gate))
    flat = {**call, "dt_bias": call["dt_bias"].reshape(-1)}
    assert stage_runs.bits(lib.call(OP, **call)) == stage_runs.bits(lib.call(OP, **flat))


@pytest.mark.parametrize("tokens", (1, 64, 150))
def test_state_with_values_first_gives_the_same_bits(lib, tokens):
    call = arguments(bwd_cases.make(22, tokens=tokens, initial_state=True))
    turned = np.ascontiguousarray(np.swapaxes(call["h"], -1, -2))
    want = stage_runs.bits(lib.call(OP, **call))
    assert want == stage_runs.bits(lib.call(OP, **{**call, "h": turned, "state_v_first": True}))


def test_operands_of_the_gate_are_checked(lib):
    gated = arguments(bwd_cases.make(23, tokens=16, gate="softplus"))
    plain = arguments(bwd_cases.make(23, tokens=16, gate="activated"))
    outputs = {name: gated["outputs"][name] for name in PARAMETERS}
    with pytest.raises(AclnnError, match="a_log"):
        lib.call(OP, **{**gated, "a_log": None})
    for name in PARAMETERS:
        with pytest.raises(AclnnError, match=name):
            lib.call(OP, **{**gated, "outputs": {**gated["outputs"], name: None}})
        with pytest.raises(AclnnError, match=name):
            asked = {**plain["outputs"], name: outputs[name]}
            lib.call(OP, **{**plain, "outputs": asked})
    want = stage_runs.bits(lib.call(OP, **plain))
    for name in ("a_log", "dt_bias"):  # unread under an activated gate
        got = lib.call(OP, **{**plain, name: np.full_like(gated[name], np.nan)})
        assert stage_runs.bits(got) == want, name
