# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Inputs of bwd_prepare and bwd_finalize: what the stages before them leave for random inputs, in
the precision in which it is stored, so that a stage is judged on its own rounding only."""

from dataclasses import dataclass

import numpy as np

from tests.support import inputs, reference
from tests.support.io_types import BFLOAT16, IoType

IO_CACHES = ("aqk", "akk", "kg", "w", "u", "qg", "qg_scaled", "q_hat", "k_hat", "h", "v_new")
FP32_CACHES = ("gk", "q_rstd", "k_rstd", "beta_eff")


@dataclass
class BwdCase:
    """`x` is the chain's input; `cache` holds float32 arrays, values of `io` where io is stored."""

    x: inputs.Inputs
    cache: dict
    io: IoType = BFLOAT16

    @property
    def shape(self):
        return self.x.v.shape[:3]

    @property
    def key_heads(self):
        return self.x.k.shape[1]


def make(seed, io=BFLOAT16, upstream=1.0, **options):
    """An inputs.make_inputs case with the caches of stages 1, 3, 5 and 7, d_o and dht times
    `upstream`."""
    x = inputs.make_inputs(seed, io=io, **options)
    _, _, exact = x.forward()
    cache = {name: io.round(exact[name]) for name in IO_CACHES}
    for name in FP32_CACHES:
        cache[name] = None if exact[name] is None else np.asarray(exact[name], np.float32)
    d_o = np.zeros_like(x.v) if x.d_o is None else io.round(upstream * x.d_o)
    dht = None if x.dht is None else upstream * x.dht
    cache["d_o"] = np.asarray(d_o, np.float32)
    d_aqk, dv_local, dq_raw = reference.bwd_prepare(
        cache["aqk"], cache["v_new"], d_o, cache["h"], scale=x.scale, cu_seqlens=x.cu_seqlens
    )
    dh, _, dv_scan = reference.bwd_dhu(
        cache["qg"],
        cache["kg"],
        cache["w"],
        d_o,
        io.round(dv_local),
        x.scale,
        gk=cache["gk"],
        h0=x.initial_state,
        dht=dht,
        cu_seqlens=x.cu_seqlens,
        use_exp2=x.options.get("use_exp2", True),
    )
    cache.update(
        dv_local=io.round(dv_local),
        d_aqk=np.asarray(d_aqk, np.float32),
        dq_raw=np.asarray(dq_raw, np.float32),
        dh=io.round(dh),
        dv_scan=io.round(dv_scan),
    )
    return BwdCase(x, cache, io)


def exact_v_new(case):
    """v_new = Akk diag(beta) (v - 2^gk k h) of the stored caches, in float64. bwd_finalize computes
    it anew from v, so its reference must not start from the rounded one."""
    c = {name: reference.wide(case.cache[name]) for name in ("akk", "beta_eff", "gk", "k_hat", "h")}
    c["k_hat"] = reference.expand_heads(c["k_hat"], case.shape[1] // case.key_heads)
    out = np.zeros(case.x.v.shape)
    for chunk in reference.chunks(out.shape[0], out.shape[2], cu_seqlens=case.x.cu_seqlens):
        at = (chunk.batch, slice(None), slice(chunk.start, chunk.stop))
        folded = c["akk"][at][..., : chunk.stop - chunk.start] * c["beta_eff"][at][:, None, :]
        decayed = c["k_hat"][at] * reference.decay_factor(
            c["gk"][at], case.x.options.get("use_exp2", True)
        )
        out[at] = folded @ (case.x.v[at] - decayed @ c["h"][chunk.batch, chunk.slot])
    return out


def placed(x, layout):
    """A head-major array in the memory order of `layout`."""
    return np.ascontiguousarray(np.swapaxes(x, 1, 2) if layout == "BSND" else x)


def placed_io(x, io, layout="BNSD"):
    return io.array(placed(x, layout))


def placed_bf16(x, layout="BNSD"):
    return placed_io(x, BFLOAT16, layout)


def chunk_rows(tokens, chunk=64):
    return [min(chunk, tokens - start) for start in range(0, tokens, chunk)]


def mmad_rows(rows):
    """A single row runs as a fractal of sixteen."""
    return 16 if rows == 1 else rows
