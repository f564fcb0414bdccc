# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Small calls of every stage that together go through every line of the kernels: whole and short
chunks, more tasks than one core takes at a time, one core and several, both layouts, states given
or not, both types where two are allowed."""

import zlib
from dataclasses import dataclass

import numpy as np

from hyper_parallel_kda import stage_table as table
from tests.support import stage_calls
from tests.support.aclnn import BF16
from tests.support.io_types import BFLOAT16, FLOAT16


@dataclass
class Case:
    name: str
    stage: str
    op: str
    cores: int
    arguments: dict
    outputs: dict


def _case(
    stage_name,
    title,
    cores=2,
    layout="BNSD",
    drop=(),
    cast=None,
    pairs=False,
    io=BFLOAT16,
    **options,
):
    """Random operands of the stage; `drop` leaves operands out, `cast` gives them another type,
    `pairs` adds low halves, what stage_calls.sizes does not know are attributes."""
    stage = table.STAGE_BY_NAME[stage_name]
    known = ("batch", "tokens", "heads", "ranks", "cu_seqlens", "key_heads")
    dims = {name: options.pop(name) for name in known if name in options}
    heads = dims.pop("heads", 2)
    key_heads = dims.pop("key_heads", heads)
    sizes = stage_calls.sizes(stage, key_heads=key_heads, value_heads=heads, **dims)
    values = {**stage_calls.attributes(stage, layout), **options}
    rank3 = layout in table.RANK3_LAYOUTS
    rng = np.random.default_rng(zlib.crc32(f"{stage_name} {title}".encode()))
    arrays = stage_calls.tensors(stage, sizes, values, rng, rank3, pairs, io)
    if "gk" in arrays:  # what fwd_prepare makes: sums of negative numbers, anew in every chunk
        arrays["gk"] = _cumulative(arrays["gk"])
    for name in drop:
        arrays.pop(name, None)
    for name, dtype in (cast or {}).items():
        arrays[name] = arrays[name].astype(dtype)
    present = {**values, **{spec.name: arrays.get(spec.name) for spec in stage.inputs}}
    present["output_final_state"] = options.pop("output_final_state", True)
    values.pop("output_final_state", None)
    outputs = stage_calls.outputs(stage, sizes, values, arrays, rank3, io)
    values.update(stage_calls.packing(stage, dims.get("cu_seqlens")))
    for spec in stage.outputs:
        if not table.is_present(spec, present):
            outputs[spec.name] = None
    return Case(f"{stage_name} {title}", stage_name, stage.op, cores, {**values, **arrays}, outputs)


def _cumulative(gk):
    """Chunks of packed sequences begin elsewhere; that does not matter to a mutant."""
    out = -0.2 * np.abs(gk)
    for start in range(0, gk.shape[-2], 64):
        rows = slice(start, start + 64)
        out[..., rows, :] = np.cumsum(out[..., rows, :], axis=-2)
    return np.ascontiguousarray(out, gk.dtype)


def _fwd_prepare():
    norm = dict(use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, lower_bound=-0.3)
    fp32 = dict.fromkeys(("g", "beta"), np.float32)
    bf16 = dict.fromkeys(("g", "beta"), BF16)
    yield _case("fwd_prepare", "tail, two cores", tokens=145, heads=3, cast=bf16, **norm)
    yield _case("fwd_prepare", "many rounds", 1, tokens=129, heads=4, cast=bf16, **norm)
    yield _case("fwd_prepare", "fp32, token-major", 1, "BSND", ("dt_bias",), fp32, tokens=65,
                **norm)  # fmt: skip
    yield _case("fwd_prepare", "no caches", 1, tokens=17, cast=fp32, backward_mode="none", **norm)
    yield _case("fwd_prepare", "no norm", 1, tokens=40, cast=bf16, backward_mode="forward",
                **{**norm, "use_qk_l2norm_in_kernel": False})  # fmt: skip
    # A core whose first chunk is a tail: nothing before it has filled the buffers.
    yield _case("fwd_prepare", "tail first", 4, tokens=65)
    yield _case("fwd_prepare", "precise", 1, tokens=81, heads=3, cast=bf16, precise_relay=True,
                **norm)  # fmt: skip
    yield _case("fwd_prepare", "pairs", 2, tokens=145, heads=3, precise_relay=True, **norm)
    yield _case("fwd_prepare", "float16", 1, tokens=81, heads=3, io=FLOAT16, precise_relay=True,
                **norm)  # fmt: skip
    softplus = {**norm, "safe_gate": False}
    yield _case("fwd_prepare", "softplus", 2, tokens=145, heads=3, cast=bf16, **softplus)
    yield _case("fwd_prepare", "softplus, tail first", 4, "BSND", ("dt_bias",), fp32, tokens=81,
                **softplus)  # fmt: skip
    yield _case("fwd_prepare", "activated", 1, drop=("a_log", "dt_bias"), tokens=129, heads=3,
                cast=fp32, use_gate_in_kernel=False, use_exp2=False, allow_neg_eigval=True,
                use_beta_sigmoid_in_kernel=True)  # fmt: skip


def _scans():
    fp32, bf16 = np.float32, BF16
    for cores, heads in ((1, 3), (2, 5)):
        title = f"{cores} cores"
        yield _case("fwd_h", title, cores, tokens=145, heads=heads, cast={"initial_state": fp32})
        yield _case("pre_process_fwd", title, cores, tokens=145, heads=heads)
        yield _case("bwd_dhu", title, cores, tokens=145, heads=heads, cast={"dht": fp32})
        yield _case("pre_process_bwd", title, cores, tokens=145, heads=heads)
    yield _case("fwd_h", "zero state", 1, tokens=129, batch=2, drop=("initial_state",),
                output_final_state=False)  # fmt: skip
    yield _case("fwd_h", "bf16 state, short", 1, tokens=30, heads=3, batch=2,
                cast={"initial_state": bf16})  # fmt: skip
    yield _case("bwd_dhu", "zero state, token-major", 1, "BSND", ("dht", "h0"), tokens=97, heads=3)
    yield _case("bwd_dhu", "bf16 state", 2, tokens=65, heads=3, batch=2, cast={"dht": bf16})
    for v_first in (False, True):
        for stage, cast in (("fwd_h", {"u": fp32}), ("bwd_dhu", {})):
            yield _case(stage, f"pairs, V first {v_first}", 1, tokens=145, heads=3, cast=cast,
                        pairs=True, state_v_first=v_first)  # fmt: skip
    for dtype in (fp32, bf16):  # one core with whole states, 24 with halves of their columns
        title = f"V first, {np.dtype(dtype).name}"
        yield _case("fwd_h", title, 1, tokens=145, heads=3, cast={"initial_state": dtype},
                    state_v_first=True)  # fmt: skip
        yield _case("bwd_dhu", title, 24, "BSND", tokens=145, heads=3, cast={"dht": dtype},
                    state_v_first=True)  # fmt: skip


def _others():
    yield _case("fwd_finalize", "tail", 2, tokens=145, heads=3)
    yield _case("fwd_finalize", "one row", 1, tokens=65, heads=3, output_layout="BSND")
    yield _case("fwd_finalize", "V first", 2, tokens=81, heads=3, state_v_first=True)
    yield _case("bwd_prepare", "tail", 2, tokens=145, heads=3)
    yield _case("bwd_prepare", "one row", 1, "BSND", tokens=65, heads=3)
    yield _case("bwd_prepare", "V first", 2, tokens=81, heads=3, state_v_first=True)
    yield _case("bwd_prepare", "rows too far apart for one copy", 24, "BSND", tokens=17, heads=512)
    for count in (0, 3):
        yield _case("merge_fwd_bwd", f"{count} ranks", 1, heads=5, ranks=4,
                    pre_or_post_num_ranks=count, rank=3)  # fmt: skip
    yield _case("merge_fwd_bwd", "backward", 2, heads=5, ranks=4, forward=False,
                pre_or_post_num_ranks=2, rank=0)  # fmt: skip
    for cores in (1, 24):
        yield _case("merge_fwd_bwd", f"V first, {cores} cores", cores, heads=5, ranks=4,
                    pre_or_post_num_ranks=3, rank=3, state_v_first=True)  # fmt: skip


def _bwd_finalize():
    sigmoid = dict(use_beta_sigmoid_in_kernel=True)
    fp32 = {"raw_g": np.float32}
    yield _case("bwd_finalize", "tail", 1, tokens=145, cast={"raw_g": BF16}, **sigmoid)
    yield _case("bwd_finalize", "two cores", 2, "BSND", tokens=81, heads=5, cast=fp32, **sigmoid)
    yield _case("bwd_finalize", "no norm", 1, "BSND", ("q_rstd", "k_rstd", "dt_bias"), fp32,
                tokens=33, batch=2)  # fmt: skip
    yield _case("bwd_finalize", "many chunks", 2, tokens=64 * 18, heads=1, cast=fp32)
    # Gates without a bound; a core whose first chunk is a tail; groups on one core and on several.
    yield _case("bwd_finalize", "softplus", 2, tokens=145, heads=3, cast={"raw_g": BF16},
                safe_gate=False, **sigmoid)  # fmt: skip
    yield _case("bwd_finalize", "softplus, tail first", 4, "BSND", ("dt_bias",), fp32, tokens=81,
                safe_gate=False)  # fmt: skip
    yield _case("bwd_finalize", "activated, groups", 1, drop=("a_log", "dt_bias"), tokens=100,
                heads=6, key_heads=2, cast=fp32, use_gate_in_kernel=False, use_exp2=False,
                state_v_first=True)  # fmt: skip
    yield _case("bwd_finalize", "groups", 2, tokens=70, heads=6, key_heads=2, cast=fp32)
    yield _case("bwd_finalize", "pairs", 1, tokens=145, heads=3, cast=fp32, pairs=True)
    yield _case("bwd_finalize", "pairs, softplus, V first", 2, tokens=81, heads=3, cast=fp32,
                pairs=True, safe_gate=False, state_v_first=True)  # fmt: skip


def _packed():
    """One core, so that sequences follow each other in its buffers; an empty one among them."""
    for stage in table.STAGES:
        if any(spec.name == "cu_seqlens" for spec in stage.inputs):
            lists = dict(cu_seqlens=[0, 70, 70, 75, 150])
            yield _case(stage.name, "packed, rank 3", 1, "TND", heads=2, key_heads=1, **lists)


def all_cases():
    return [*_fwd_prepare(), *_scans(), *_others(), *_bwd_finalize(), *_packed()]
