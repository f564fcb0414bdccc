# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The examples of docs/api.md: code that tests run, block by block, in one namespace."""

EXAMPLES = {}

EXAMPLES["chunk_kda"] = """\
import mindspore as ms
import numpy as np

from hyper_parallel_kda import npu_chunk_kda

B, T, H, K, V = 1, 100, 2, 128, 128
rng = np.random.default_rng(0)


def tensor(*shape, dtype=ms.bfloat16):
    return ms.Tensor(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def same(a, b):
    return np.array_equal(a.astype(ms.float32).asnumpy(), b.astype(ms.float32).asnumpy())


q, k, v, g = (tensor(B, H, T, K) for _ in range(4))
beta, a_log, dt_bias = tensor(B, H, T), tensor(H, dtype=ms.float32), tensor(H, K, dtype=ms.float32)
options = {
    "safe_gate": True,
    "a_log": a_log,
    "dt_bias": dt_bias,
    "use_qk_l2norm_in_kernel": True,
    "use_beta_sigmoid_in_kernel": True,
}


def loss(q, k, v, g, beta):
    attn_out, final_state = npu_chunk_kda(
        q, k, v, g, beta, K**-0.5, output_final_state=True, **options
    )
    return attn_out.astype(ms.float32).sum() + final_state.sum(), attn_out, final_state


run = ms.value_and_grad(loss, grad_position=(0, 1, 2, 3, 4), has_aux=True)
(_, attn_out, final_state), grads = run(q, k, v, g, beta)
assert attn_out.shape == (B, T, H, V) and final_state.shape == (B, H, K, V)
assert [grad.shape for grad in grads] == [x.shape for x in (q, k, v, g, beta)]
"""

EXAMPLES["fwd_finalize"] = """\
# The three forward stages are what npu_chunk_kda runs.
from hyper_parallel_kda import (
    npu_chunk_kda_fwd_finalize,
    npu_chunk_kda_fwd_h,
    npu_chunk_kda_fwd_prepare,
)

slots = npu_chunk_kda_fwd_prepare(q, k, v, g, beta, K**-0.5, use_gate_in_kernel=True, **options)
gk, aqk, akk, w, u, qg, kg, qg_scaled, q_hat, k_hat, q_rstd, k_rstd, beta_eff = slots
h, v_new, final = npu_chunk_kda_fwd_h(kg, w, u, gk=gk, output_final_state=True)
o = npu_chunk_kda_fwd_finalize(qg_scaled, aqk, v_new, h)  # BSND
assert same(o, attn_out) and same(final, final_state)
"""

EXAMPLES["bwd_finalize"] = """\
# The three backward stages; the loss above has gradients of one everywhere.
from hyper_parallel_kda import (
    npu_chunk_kda_bwd_dhu,
    npu_chunk_kda_bwd_finalize,
    npu_chunk_kda_bwd_prepare,
)

d_o, dht = ms.ops.ones(v.shape, ms.bfloat16), ms.ops.ones(final_state.shape, ms.float32)
d_aqk, dv_local, dq_raw = npu_chunk_kda_bwd_prepare(aqk, v_new, d_o, h, scale=K**-0.5)
dh, _, dv_scan = npu_chunk_kda_bwd_dhu(qg, kg, w, d_o, dv_local, K**-0.5, gk=gk, dht=dht)
dq, dk, dv, dbeta, dg, da_log, ddt_bias = npu_chunk_kda_bwd_finalize(
    q_hat, k_hat, v, gk, g, beta_eff, a_log, dt_bias, akk, v_new, h, dh, dv_scan, d_aqk, dq_raw,
    scale=K**-0.5, q_rstd=q_rstd, k_rstd=k_rstd, use_beta_sigmoid_in_kernel=True,
)  # fmt: skip
for got, want in zip((dq, dk, dv, dg, dbeta.astype(ms.bfloat16)), grads):
    assert same(got, want)
"""

EXAMPLES["merge_fwd_bwd"] = """\
# A sequence split over two ranks: rank 1 needs the state at its first token, and rank 0 the
# gradient of the state behind its last one. Here both halves are in one process.
from hyper_parallel_kda import (
    npu_chunk_kda_merge_fwd_bwd,
    npu_chunk_kda_pre_process_bwd,
    npu_chunk_kda_pre_process_fwd,
)

halves = [slice(0, 64), slice(64, T)]  # on the grid of chunks
summaries = ms.ops.cat(
    [
        npu_chunk_kda_pre_process_fwd(kg[:, :, s], w[:, :, s], u[:, :, s], gk=gk[:, :, s])[0]
        for s in halves
    ]
)  # [R, Hv, K, V + K], after an all-gather
state = ms.ops.zeros((H, K, V), ms.float32)
npu_chunk_kda_merge_fwd_bwd(state, summaries, pre_or_post_num_ranks=1, rank=1)
error = state - h[0, 1].astype(ms.float32)  # h has the state at the entry of chunk 1
assert error.norm() < 1e-2 * state.norm()

summaries = ms.ops.stack(
    [
        npu_chunk_kda_pre_process_bwd(
            *(x[:, :, s] for x in (qg, kg, w, d_o, dv_local)), K**-0.5, gk=gk[:, :, s]
        )
        for s in halves
    ]
)
gradient = ms.ops.ones((H, K, V), ms.float32)  # of the state behind the last token
npu_chunk_kda_merge_fwd_bwd(gradient, summaries, 1, 0, forward=False)
error = gradient - dh[0, 0].astype(ms.float32)  # dh has the gradient at the exit of chunk 0
assert error.norm() < 1e-2 * gradient.norm()
"""
