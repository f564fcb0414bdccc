# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Calls of bwd_finalize from a bwd_cases.BwdCase, and what the float64 reference makes of them."""

from tests.stages import bwd_cases
from tests.support import inputs, metrics, reference, sizes

OP = "ChunkKdaBwdFinalize"
PARAMETERS = ("da_log", "ddt_bias")
OPTIONS = (
    "use_gate_in_kernel",
    "safe_gate",
    "use_exp2",
    "use_beta_sigmoid_in_kernel",
    "allow_neg_eigval",
)
OUTPUTS = ("dq", "dk", "dv", "dbeta", "dg", "da_log", "ddt_bias")
# Twice what was measured over this file's cases, the stage alone.
LIMITS = dict(dq=6e-3, dk=8e-3, dv=4e-3, dbeta=4e-3, dg=7e-3, da_log=3e-2, ddt_bias=7e-3)
# io and fp32 caches that go in as they are, by the op's names.
IO_INPUTS = dict(q="q_hat", k="k_hat", akk="akk", v_new="v_new", h="h", dh="dh", dv_scan="dv_scan")
FP32_INPUTS = dict(
    gk="gk", beta="beta_eff", d_aqk="d_aqk", dq_raw="dq_raw", q_rstd="q_rstd", k_rstd="k_rstd"
)


def shapes(case, layout, gate_type):
    batch, heads, tokens = case.shape

    def lead_of(heads):
        return (batch, tokens, heads) if layout == "BSND" else (batch, heads, tokens)

    lead = lead_of(heads)
    rows, key_rows = lead + (128,), lead_of(case.key_heads) + (128,)
    return {
        "dq": (key_rows, case.io.dtype),
        "dk": (key_rows, case.io.dtype),
        "dv": (rows, case.io.dtype),
        "dbeta": lead,
        "dg": (rows, gate_type),
        "da_log": (heads,),
        "ddt_bias": (heads, 128),
    }


def arguments(case, input_layout="BNSD", output_layout="BNSD", gate_type=None, **changes):
    gate_type = gate_type or case.io.dtype
    call = {op: bwd_cases.placed_io(case.cache[name], case.io) for op, name in IO_INPUTS.items()}
    call.update({op: case.cache[name] for op, name in FP32_INPUTS.items()})
    options = case.x.options
    gated = options.get("use_gate_in_kernel", True)
    call.update(
        v=bwd_cases.placed_io(case.x.v, case.io, input_layout),
        raw_g=bwd_cases.placed(case.x.g, input_layout).astype(gate_type),
        a_log=case.x.a_log,
        dt_bias=case.x.dt_bias,
        scale=case.x.scale,
        input_layout=input_layout,
        output_layout=output_layout,
        outputs={
            name: shape if gated or name not in PARAMETERS else None
            for name, shape in shapes(case, output_layout, gate_type).items()
        },
        **{name: options[name] for name in OPTIONS if name in options},
    )
    call.update(changes)
    return call


def expected(case, **changes):
    c = {**case.cache, "v_new": bwd_cases.exact_v_new(case)}
    options = dict(scale=case.x.scale, q_rstd=c["q_rstd"], k_rstd=c["k_rstd"])
    options.update({name: case.x.options[name] for name in OPTIONS if name in case.x.options})
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
    out = {name: got.f32(name) for name in OUTPUTS if got.get(name) is not None}
    for name in ("dq", "dk", "dv", "dbeta", "dg"):
        out[name] = reference.to_head_major(out[name], layout)
    return out


def own_sizes(case, want):
    """da_log, one number a head, is judged on the scale of the terms that it sums."""
    return {"da_log": sizes.da_log(case.x, want["dg"])} if "dg" in want else {}


def check(got, want, case, limits=LIMITS, floor=0.0):
    own = own_sizes(case, want)
    for comparison in metrics.check_all(got, want, limits, None, case.x.case, floor, own):
        print(comparison)


def fresh(heads=8, **options):
    """Eight heads: four numbers, as dbeta of a token in two batches, can all be near zero."""
    return bwd_cases.make(inputs.fresh_seed(), heads=heads, **options)


def macs(rows, bounded=True):
    """The formula of op_kernel/chunk_kda_bwd_finalize.cpp for a chunk of `rows` rows."""
    n = bwd_cases.mmad_rows
    total = 128**3 + n(rows) * 128 * (128 + rows)
    total += 2 * n(rows) * 128 * 128 + 4 * n(rows) * rows * 128
    total += 2 * n(rows) * rows * rows
    for start in range(0, rows, 16):
        block = min(16, rows - start)
        end = start + block
        if bounded:
            total += 4 * n(block) * 128 * end + 4 * n(end) * 128 * block
        else:
            total += 4 * (n(block) + block) * 128 * start + 4 * 16 * 128 * 128
    return total
