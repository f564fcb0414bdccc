# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_prepare on the simulator against the float64 reference."""

import numpy as np
import pytest

from tests.stages import bwd_cases, stage_runs
from tests.support import inputs, metrics, reference
from tests.support.aclnn import AclnnError

OP = "ChunkKdaBwdPrepare"
# Twice what was measured: fp32 outputs carry the rounding of fp32 sums, dv_local that of bf16.
LIMITS = {"d_aqk": 3e-7, "dv_local": 4e-3, "dq_raw": 3e-7}


def limits(io, tokens=64):
    """Products of float16 numbers have 22 bits, those of bfloat16 16: fp32 sums of them round more,
    and a handful of sums that may cancel says little (150 calls of one token: up to 5.8e-7)."""
    few = tokens <= 2  # a handful of inner products, of which one can be near zero
    return {
        "d_aqk": 1.2e-6 if few else 4e-7 if io.is_half else LIMITS["d_aqk"],
        "dq_raw": 4e-7 if io.is_half else LIMITS["dq_raw"],
        **stage_runs.limits({"dv_local": LIMITS["dv_local"]}, io),
    }


def arguments(case, layout="BNSD", **changes):
    batch, heads, tokens = case.shape
    call = dict(
        aqk=bwd_cases.placed_io(case.cache["aqk"], case.io),
        v_new=bwd_cases.placed_io(case.cache["v_new"], case.io),
        d_o=bwd_cases.placed_io(case.cache["d_o"], case.io, layout),
        h=bwd_cases.placed_io(case.cache["h"], case.io),
        scale=case.x.scale,
        layout=layout,
        outputs={
            "d_aqk": (batch, heads, tokens, 64),
            "dv_local": (batch, heads, tokens, 128),
            "dq_raw": (batch, heads, tokens, 128),
        },
    )
    call.update(changes)
    return call


def expected(case):
    c = case.cache
    return dict(
        zip(
            LIMITS,
            reference.bwd_prepare(c["aqk"], c["v_new"], c["d_o"], c["h"], scale=case.x.scale),
            strict=True,
        )
    )


def fresh(**options):
    return bwd_cases.make(inputs.fresh_seed(), **options)


@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@stage_runs.IO
def test_against_the_reference(lib, tokens, layout, io):
    case = fresh(batch=2, tokens=tokens, heads=3, initial_state=True, io=io)
    got = lib.call(OP, **arguments(case, layout))
    want = expected(case)
    for comparison in metrics.check_all(
        {n: got.f32(n) for n in LIMITS}, want, limits(io, tokens), title=case.x.case
    ):
        print(comparison)
    # What the mask drops is exactly zero, columns past the end of a short chunk included.
    assert not got["d_aqk"][want["d_aqk"] == 0].any()


def test_a_token_pitch_that_no_copy_parameter_holds(lib):
    """520 heads of 128: 66,560 elements from token to token, more than Nd2Nz's 16 bits."""
    case = bwd_cases.make(6, tokens=3, heads=520)
    got = lib.call(OP, **arguments(case, "BSND"))
    metrics.check_all({n: got.f32(n) for n in LIMITS}, expected(case), LIMITS, title=case.x.case)


def test_same_bits_on_any_core_and_thread_count(lib):
    case = bwd_cases.make(1, batch=2, tokens=200, heads=3)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, "BSND"))


@pytest.mark.parametrize("tokens", (65, 128, 200))
def test_instruction_counts(lib, tokens):
    case = bwd_cases.make(2, tokens=tokens, heads=2)
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    rows = bwd_cases.chunk_rows(tokens)
    macs = sum(bwd_cases.mmad_rows(r) * 128 * (2 * r + 128) for r in rows)
    tasks = 2 * len(rows)
    assert counters["mmad_macs"] == 2 * macs
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] + counters["scalar_writes"] <= 4 * tasks


@pytest.mark.parametrize("name", ("aqk", "v_new", "d_o", "h"))
def test_nan_stays_in_its_head(lib, name):
    case = bwd_cases.make(3, batch=2, tokens=70, heads=2)
    call = arguments(case)
    clean = lib.call(OP, **call)
    spoiled = {**call, name: call[name].copy()}
    at = (0, slice(None), 1) if name == "h" else (0, 1)
    spoiled[name][at] = np.nan
    with lib.cores(1):  # every task runs through the same buffers
        got = lib.call(OP, **spoiled)
    for output in LIMITS:
        stage_runs.assert_contained(clean[output], got[output], (0, 1))


def test_no_tokens(lib):
    none = np.zeros((2, 3, 0, 128), np.float32)
    scores = np.zeros((2, 3, 0, 64), np.float32)
    bf16 = bwd_cases.placed_bf16
    got = lib.call(
        OP,
        aqk=bf16(scores),
        v_new=bf16(none),
        d_o=bf16(none),
        h=bf16(np.zeros((2, 0, 3, 128, 128), np.float32)),
        scale=1.0,
        outputs={"d_aqk": scores.shape, "dv_local": none.shape, "dq_raw": none.shape},
    )
    assert got["dq_raw"].shape == none.shape


def test_refusals_name_the_argument(lib):
    case = bwd_cases.make(4, tokens=16, heads=2)
    wrong = {
        "chunk_size": dict(chunk_size=32),
        "layout": dict(layout="NHTD"),
        "cu_seqlens": dict(cu_seqlens=(0, 16)),
        "h": dict(h=bwd_cases.placed_bf16(np.zeros((1, 2, 2, 128, 128), np.float32))),
        "aqk": dict(aqk=np.zeros((1, 2, 16, 64), np.float32)),
    }
    wrong["no supported combination"] = dict(d_o=np.float16(case.cache["d_o"]))
    for name, change in wrong.items():
        with pytest.raises(AclnnError, match=name):
            lib.call(OP, **arguments(case, **change))
    lib.call(OP, **arguments(case))
