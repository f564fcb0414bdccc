# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Every stage on packed sequences in every layout, with grouped heads, against float64."""

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import (
    bwd_cases,
    finalize_runs,
    stage_runs,
    test_bwd_dhu,
    test_bwd_prepare,
    test_fwd_finalize,
    test_fwd_h,
    test_fwd_prepare,
    test_pre_process_bwd,
    test_pre_process_fwd,
)
from tests.support import inputs, reference, stage_calls
from tests.support.io_types import FLOAT16
from tests.support.metrics import check_all

LENGTHS = [70, 0, 5, 64, 1, 129]
LIMITS = {
    "fwd_prepare": test_fwd_prepare.LIMITS,
    "pre_process_fwd": test_pre_process_fwd.LIMITS,
    "fwd_h": test_fwd_h.LIMITS,
    "fwd_finalize": test_fwd_finalize.LIMITS,
    "bwd_prepare": test_bwd_prepare.LIMITS,
    "pre_process_bwd": test_pre_process_bwd.LIMITS,
    "bwd_dhu": test_bwd_dhu.LIMITS,
    "bwd_finalize": finalize_runs.LIMITS,
}
# fwd_prepare and bwd_finalize have files of their own for float16.
FLOAT16_LIMITS = {
    name: stage_runs.limits(LIMITS[name], FLOAT16)
    for name in ("pre_process_fwd", "fwd_h", "fwd_finalize", "pre_process_bwd", "bwd_dhu")
} | {"bwd_prepare": test_bwd_prepare.limits(FLOAT16)}
STAGES = pytest.mark.parametrize(
    "stage", [table.STAGE_BY_NAME[name] for name in LIMITS], ids=lambda stage: stage.name
)
# What the stages call operands that have another name where they are made.
ALIASES = {
    "pre_process_fwd": {"k": "kg"},
    "fwd_h": {"k": "kg"},
    "pre_process_bwd": {"q": "qg", "k": "kg", "dv": "dv_local"},
    "bwd_dhu": {"q": "qg", "k": "kg", "dv": "dv_local", "h0": "initial_state"},
    "bwd_finalize": {"q": "q_hat", "k": "k_hat", "raw_g": "g", "beta": "beta_eff"},
}


def fresh(heads=8, key_heads=4, **options):
    seed = inputs.fresh_seed()
    return bwd_cases.make(
        seed,
        tokens=sum(LENGTHS),
        heads=heads,
        key_heads=key_heads,
        initial_state=True,
        cu_seqlens=inputs.packed(LENGTHS),
        **options,
    )


def operand(case, stage, spec):
    name = ALIASES.get(stage.name, {}).get(spec.name, spec.name)
    return case.cache[name] if name in case.cache else getattr(case.x, name)


def call(lib, case, stage, layout):
    """The outputs, head-major with a batch axis."""
    rank3 = layout in table.RANK3_LAYOUTS
    values = stage_calls.attributes(stage, layout)
    wanted = {**case.x.options, "scale": case.x.scale}
    values.update({name: value for name, value in wanted.items() if name in values})
    cache_layout = "NTD" if rank3 else "BNSD"
    arrays = {}
    for spec in stage.inputs:
        if isinstance(spec, table.TensorSpec):
            if spec.name.endswith("_low"):  # test_packed.py compares with dense calls
                arrays[spec.name] = None
                continue
            value = operand(case, stage, spec)
            if "T" in spec.dims:
                value = reference.from_head_major(value, layout if spec.layout else cache_layout)
            dtype = stage_calls.dtypes(case.io)[spec.dtype if spec.dtype != "io|fp32" else "fp32"]
            arrays[spec.name] = np.ascontiguousarray(value).astype(dtype)
    heads = {"key_heads": case.key_heads, "value_heads": case.shape[1]}
    dims = stage_calls.sizes(stage, cu_seqlens=case.x.cu_seqlens, **heads)
    outputs = stage_calls.outputs(stage, dims, values, arrays, rank3, case.io)
    asked = {"output_final_state": True, **values, **arrays}
    outputs = {
        spec.name: outputs[spec.name] if table.is_present(spec, asked) else None
        for spec in stage.outputs
    }
    lists = stage_calls.packing(stage, case.x.cu_seqlens)
    results = lib.call(stage.op, outputs=outputs, **values, **arrays, **lists)
    out = {name: results.f32(name) for name in results}
    for spec in stage.outputs:
        if "T" in spec.dims and spec.name in out:
            placed = layout if spec.layout else cache_layout
            out[spec.name] = reference.to_head_major(out[spec.name], placed)
    return out


def expected(case, stage):
    x, c = case.x, {**case.cache}
    scale = np.float64(np.float32(x.scale))
    packed = {"cu_seqlens": x.cu_seqlens}
    if stage.name == "fwd_prepare":
        return reference.fwd_prepare(
            x.q, x.k, x.v, x.g, x.beta, scale, a_log=x.a_log, dt_bias=x.dt_bias, **x.options,
            **packed,
        )  # fmt: skip
    scan = (c["kg"], c["w"], c["u"])
    back = (c["qg"], c["kg"], c["w"], c["d_o"], c["dv_local"], scale)
    if stage.name == "pre_process_fwd":
        return summary(reference.pre_process_fwd(*scan, gk=c["gk"], **packed))
    if stage.name == "fwd_h":
        results = reference.fwd_h(*scan, gk=c["gk"], initial_state=x.initial_state, **packed)
    elif stage.name == "fwd_finalize":
        results = [reference.fwd_finalize(c["qg_scaled"], c["aqk"], c["v_new"], c["h"], **packed)]
    elif stage.name == "bwd_prepare":
        results = reference.bwd_prepare(
            c["aqk"], c["v_new"], c["d_o"], c["h"], scale=scale, **packed
        )
    elif stage.name == "pre_process_bwd":
        return summary(reference.pre_process_bwd(*back, gk=c["gk"], **packed)[0])
    elif stage.name == "bwd_dhu":
        results = reference.bwd_dhu(*back, gk=c["gk"], h0=x.initial_state, dht=x.dht, **packed)
    else:
        return finalize_runs.expected(case, **packed)
    return dict(zip((spec.name for spec in stage.outputs), results, strict=False))


def check(lib, case, stage, layout, limits):
    got = call(lib, case, stage, layout)
    if "summary" in got:
        got = summary(got["summary"])
    want = expected(case, stage)
    own = finalize_runs.own_sizes(case, want)
    for comparison in check_all(got, want, limits, title=case.x.case, sizes=own):
        print(comparison)


def summary(both):
    return test_pre_process_fwd.parts(both)


@STAGES
@pytest.mark.parametrize("layout", table.LAYOUTS)
def test_against_float64(lib, stage, layout):
    """Under decays of one kind the slowest channel of all heads would be most of a summary's M."""
    decay = "mixed" if stage.name.startswith("pre_process") else "medium"
    check(lib, fresh(decay=decay), stage, layout, LIMITS[stage.name])


@pytest.mark.parametrize(
    "stage", [table.STAGE_BY_NAME[name] for name in FLOAT16_LIMITS], ids=lambda stage: stage.name
)
def test_float16(lib, stage):
    """Under more decay most of M is below float16's normal numbers, as are the states before it."""
    case = fresh(io=FLOAT16, decay="weak")
    check(lib, case, stage, "TND", FLOAT16_LIMITS[stage.name])


@pytest.mark.parametrize("key_heads, heads", [(3, 3), (1, 2), (1, 3), (1, 8)])
def test_groups_in_fwd_prepare(lib, key_heads, heads):
    case = fresh(heads, key_heads)
    got = call(lib, case, table.FWD_PREPARE, "TND")
    check_all(got, expected(case, table.FWD_PREPARE), LIMITS["fwd_prepare"], title=case.x.case)


@STAGES
def test_scalar_reads(lib, stage):
    """A few numbers of the lists for every chunk and head, and more where a scan looks for its
    sequence's first slot; none at all for dense input."""
    lengths, heads = [70, 0, 5, 64, 1, 129] * 8, 2
    cu_seqlens = inputs.packed(lengths)
    chunks = reference.chunk_count(None, cu_seqlens=cu_seqlens)
    arguments, outputs = stage_calls.complete_call(stage, cu_seqlens=cu_seqlens)
    _, counters = stage_runs.counted(lib, stage.op, outputs=outputs, **arguments)
    print(stage.name, counters["scalar_reads"] / (chunks * heads), "reads a chunk and head")
    assert 0 < counters["scalar_reads"] <= 48 * chunks * heads
    dense, outputs = stage_calls.complete_call(stage, tokens=cu_seqlens[-1])
    _, counters = stage_runs.counted(lib, stage.op, outputs=outputs, **dense)
    assert counters["scalar_reads"] == 0
