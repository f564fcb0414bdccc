# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_finalize on the simulator against the float64 reference."""

import numpy as np
import pytest

from tests.stages import bwd_cases, stage_runs
from tests.support import inputs, metrics, reference
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import BF16

OP = "ChunkKdaBwdFinalize"
OUTPUTS = ("dq", "dk", "dv", "dbeta", "dg", "da_log", "ddt_bias")
# Twice what was measured over this file's cases, the stage alone.
LIMITS = dict(dq=6e-3, dk=8e-3, dv=4e-3, dbeta=4e-3, dg=7e-3, da_log=3e-2, ddt_bias=7e-3)
# bf16 and fp32 caches that go in as they are, by the op's names.
BF16_INPUTS = dict(
    q="q_hat", k="k_hat", akk="akk", v_new="v_new", h="h", dh="dh", dv_scan="dv_scan"
)
FP32_INPUTS = dict(
    gk="gk", beta="beta_eff", d_aqk="d_aqk", dq_raw="dq_raw", q_rstd="q_rstd", k_rstd="k_rstd"
)


def shapes(case, layout, gate_type):
    batch, heads, tokens = case.shape
    lead = (batch, tokens, heads) if layout == "BSND" else (batch, heads, tokens)
    rows = lead + (128,)
    return {
        "dq": rows,
        "dk": rows,
        "dv": rows,
        "dbeta": lead,
        "dg": (rows, gate_type),
        "da_log": (heads,),
        "ddt_bias": (heads, 128),
    }


def arguments(case, input_layout="BNSD", output_layout="BNSD", gate_type=BF16, **changes):
    call = {op: bwd_cases.placed_bf16(case.cache[name]) for op, name in BF16_INPUTS.items()}
    call.update({op: case.cache[name] for op, name in FP32_INPUTS.items()})
    call.update(
        v=bwd_cases.placed_bf16(case.x.v, input_layout),
        raw_g=bwd_cases.placed(case.x.g, input_layout).astype(gate_type),
        a_log=case.x.a_log,
        dt_bias=case.x.dt_bias,
        scale=case.x.scale,
        input_layout=input_layout,
        output_layout=output_layout,
        use_beta_sigmoid_in_kernel=case.x.options["use_beta_sigmoid_in_kernel"],
        outputs=shapes(case, output_layout, gate_type),
    )
    call.update(changes)
    return call


def expected(case, **changes):
    c = {**case.cache, "v_new": bwd_cases.exact_v_new(case)}
    options = dict(
        scale=case.x.scale,
        q_rstd=c["q_rstd"],
        k_rstd=c["k_rstd"],
        use_beta_sigmoid_in_kernel=case.x.options["use_beta_sigmoid_in_kernel"],
    )
    options.update(changes)
    results = reference.bwd_finalize(
        c["q_hat"],
        c["k_hat"],
        case.x.v,
        c["gk"],
        case.x.g,
        c["beta_eff"],
        case.x.a_log,
        case.x.dt_bias,
        c["akk"],
        c["v_new"],
        c["h"],
        c["dh"],
        c["dv_scan"],
        c["d_aqk"],
        c["dq_raw"],
        **options,
    )
    return dict(zip(OUTPUTS, results, strict=True))


def head_major(got, layout="BNSD"):
    """float32 outputs; everything per token as [B,H,T,*]."""
    out = {name: got.f32(name) for name in OUTPUTS}
    for name in ("dq", "dk", "dv", "dbeta", "dg"):
        out[name] = reference.to_head_major(out[name], layout)
    return out


def check(got, want, title, limits=LIMITS):
    for comparison in metrics.check_all(got, want, limits, title=title):
        print(comparison)


def fresh(heads=8, **options):
    """Eight heads: da_log is one number a head, a sum that now and then nearly cancels, so the norm
    over two or three of them says little about rounding (180 cases: 10 % once, else 3 %)."""
    seed = np.random.SeedSequence().entropy % 2**31
    return bwd_cases.make(seed, heads=heads, **options)


@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
def test_lengths_and_layouts(lib, tokens, layout):
    case = fresh(batch=2, tokens=tokens, initial_state=True)
    got = lib.call(OP, **arguments(case, layout, layout))
    check(head_major(got, layout), expected(case), case.x.case)


@pytest.mark.parametrize("decay", tuple(inputs.DECAYS))
@pytest.mark.parametrize("loss", inputs.LOSSES)
@pytest.mark.parametrize("gate_type", (BF16, np.dtype(np.float32)), ids=("bf16", "fp32"))
def test_decay_loss_and_gate_type(lib, decay, loss, gate_type):
    case = fresh(tokens=129, decay=decay, loss=loss, initial_state=True)
    got = lib.call(OP, **arguments(case, "BSND", "BNSD", gate_type))
    check(head_major(got), expected(case), case.x.case)


@pytest.mark.parametrize("l2norm", (True, False))
@pytest.mark.parametrize("beta", ("sigmoid", "unit"))
@pytest.mark.parametrize("keys", inputs.KEYS)
def test_norm_beta_and_keys(lib, l2norm, beta, keys):
    case = fresh(tokens=100, l2norm=l2norm, beta=beta, keys=keys)
    got = lib.call(OP, **arguments(case, "BNSD", "BSND"))
    check(head_major(got, "BSND"), expected(case), case.x.case)


def test_a_token_pitch_that_no_copy_parameter_holds(lib):
    """520 heads of 128: 66,560 elements from token to token, more than Nd2Nz's 16 bits."""
    case = bwd_cases.make(6, tokens=3, heads=520)
    got = lib.call(OP, **arguments(case, "BSND", "BSND"))
    check(head_major(got, "BSND"), expected(case), case.x.case)


def test_without_dt_bias(lib):
    case = fresh(tokens=80)
    got = lib.call(OP, **arguments(case, dt_bias=None))
    case.x.dt_bias[:] = 0  # gk need not belong to the gate for the stage alone
    check(head_major(got), expected(case), case.x.case)


def test_negative_eigenvalues(lib):
    case = fresh(tokens=80)
    got = lib.call(OP, **arguments(case, allow_neg_eigval=True))
    check(head_major(got), expected(case, allow_neg_eigval=True), case.x.case)


def test_same_bits_on_any_core_and_thread_count(lib):
    case = bwd_cases.make(1, batch=2, tokens=200, heads=3)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, "BSND", "BSND"))


def macs(rows):
    """The formula of op_kernel/chunk_kda_bwd_finalize.cpp for a chunk of `rows` rows."""
    n = bwd_cases.mmad_rows
    total = 128**3 + n(rows) * 128 * (128 + rows)
    total += 2 * n(rows) * 128 * 128 + 4 * n(rows) * rows * 128
    total += 2 * n(rows) * rows * rows
    for start in range(0, rows, 16):
        block = min(16, rows - start)
        end = start + block
        total += 4 * n(block) * 128 * end + 4 * n(end) * 128 * block
    return total


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
        "safe_gate": dict(safe_gate=False),
        "use_gate_in_kernel": dict(use_gate_in_kernel=False),
        "use_exp2": dict(use_exp2=False),
        "state_v_first": dict(state_v_first=True),
        "lower_bound": dict(lower_bound=-6.0),
        "allow_neg_eigval": dict(allow_neg_eigval=True, use_beta_sigmoid_in_kernel=False),
        "input_layout": dict(input_layout="TND"),
        "cu_seqlens": dict(cu_seqlens=(0, 16)),
        "a_log": dict(a_log=None),
        "k_rstd": dict(k_rstd=None),
        "dt_bias": dict(dt_bias=np.zeros((3, 128), np.float32)),
        "gk": dict(gk=bwd_cases.placed_bf16(case.cache["gk"])),
        "key heads": dict(
            q=bwd_cases.placed_bf16(case.cache["q_hat"][:, :1]),
            k=bwd_cases.placed_bf16(case.cache["k_hat"][:, :1]),
            q_rstd=np.ascontiguousarray(case.cache["q_rstd"][:, :1]),
            k_rstd=np.ascontiguousarray(case.cache["k_rstd"][:, :1]),
        ),
    }
    for name, change in wrong.items():
        with pytest.raises(AclnnError, match=name):
            lib.call(OP, **arguments(case, **change))
    lib.call(OP, **arguments(case))
