# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The four forward stages. Local, not differentiable, no communication.

Shapes use B batch, T tokens, Hk/Hv query-key/value heads, K = V = 128, C = 64 the chunk length,
Nc = ceil(T / C), N = B sequences. Caches are head-major whatever the input's layout;
``[B, Hv, T, *]`` is ``[Hv, T, *]`` in calls without a batch axis (layouts "NTD" and "TND"), chunk
states then have B = 1. With cu_seqlens (packed sequences, B = 1) N is their number and Nc that of
their chunks; chunk_indices are made from it when None. docs/stages.md says more. "input dtype" is
bfloat16 or float16, all of a call alike.
Every function raises TypeError or ValueError naming a wrong argument, and RuntimeError when the op
library is missing, lacks the stage or fails.
"""

from . import stage_table as table
from .graph_mode import refuse_graph_mode
from .stage_call import run_stage

# The compiler looks these up by name and meets them before anything else.
_graph_refuses_fwd_prepare = refuse_graph_mode("npu_chunk_kda_fwd_prepare")
_graph_refuses_pre_process_fwd = refuse_graph_mode("npu_chunk_kda_pre_process_fwd")
_graph_refuses_fwd_h = refuse_graph_mode("npu_chunk_kda_fwd_h")
_graph_refuses_fwd_finalize = refuse_graph_mode("npu_chunk_kda_fwd_finalize")


def npu_chunk_kda_fwd_prepare(
    q,
    k,
    v,
    g,
    beta,
    scale,
    chunk_size=64,
    *,
    layout="BNSD",
    a_log=None,
    dt_bias=None,
    cu_seqlens=None,
    chunk_indices=None,
    epsilon=1e-6,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    safe_gate=False,
    lower_bound=-5.0,
    use_exp2=True,
    backward_mode="save",
    precise_relay=False,
):
    """All work inside a chunk that does not need the state. docs/stages.md, stage 1.

    q, k ``[B, Hk, T, K]``, v ``[B, Hv, T, V]``, g ``[B, Hv, T, K]``, beta ``[B, Hv, T]`` for layout
    "BNSD"; "BSND" has the token axis before the heads, "NTD" and "TND" have no batch axis. q, k, v
    in the input dtype; g and beta that or float32. a_log ``[Hv]`` and dt_bias ``[Hv, K]`` or
    ``[Hv * K]`` float32. scale, chunk_size, epsilon, use_qk_l2norm_in_kernel, use_gate_in_kernel
    (here False by default: g is the log decay in nats), use_beta_sigmoid_in_kernel,
    allow_neg_eigval, safe_gate, lower_bound and use_exp2 are those of ``npu_chunk_kda``, as are
    cu_seqlens and chunk_indices.

    Returns 13 slots: ``gk`` (cumulative log decay inside the chunk, in units of log2 or, with
    use_exp2=False, in nats, float32 ``[B, Hv, T, K]``), ``Aqk``, ``Akk`` ``[B, Hv, T, C]``,
    ``w``, ``u``, ``qg``, ``kg``, ``qg_scaled``, ``q_hat``, ``k_hat``, ``q_rstd``, ``k_rstd``
    (float32), ``beta_eff`` (float32).
    backward_mode selects which slots are there, the others are None: "none" 0, 1, 3, 4, 6, 7;
    "forward" adds 2; "recompute" is "none" with 8..12; "save" has all. q_rstd and k_rstd exist only
    with use_qk_l2norm_in_kernel.

    precise_relay: u is float32, computed with the inverse to twice the precision, and two more
    slots follow: ``kg_low`` and ``k_hat_low``, what the input dtype left of kg and k_hat. k_hat_low
    is there with k_hat and use_qk_l2norm_in_kernel; without the norm k_hat is exact.
    """
    _graph_refuses_fwd_prepare()
    results = run_stage(table.FWD_PREPARE, dict(locals()))
    return results if precise_relay else results[:13]


def npu_chunk_kda_pre_process_fwd(k, w, u, *, gk, cu_seqlens=None, chunk_size=64, use_exp2=True):
    """The state map of a whole sequence, for splits over ranks. docs/stages.md, stage 2.

    k (= kg) and w ``[B, Hv, T, K]``, u ``[B, Hv, T, V]`` in their dtype or float32, gk float32, in
    units of log2 or, with use_exp2=False, in nats; cu_seqlens bounds packed sequences, chunk_size
    is 64. Returns a tuple with one float32 summary ``[N, Hv, K, V + K]`` = ``[E | M]``, which means
    ``state_out = M @ state_in + E``. Summaries take no pairs: of precise_relay's results the
    float32 u alone enters.
    """
    _graph_refuses_pre_process_fwd()
    return run_stage(table.PRE_PROCESS_FWD, dict(locals()))


def npu_chunk_kda_fwd_h(
    k,
    w,
    u,
    *,
    gk,
    initial_state=None,
    output_final_state=False,
    chunk_size=64,
    cu_seqlens=None,
    chunk_indices=None,
    use_exp2=True,
    state_v_first=False,
    k_low=None,
):
    """The state recurrence over chunks. docs/stages.md, stage 3.

    k (= kg) and w ``[B, Hv, T, K]``, u ``[B, Hv, T, V]`` in the input dtype or float32, gk float32
    in units of log2 or, with use_exp2=False, in nats, initial_state ``[N, Hv, K, V]`` float32 or
    the input dtype, zero when None. Returns ``h [B, Nc, Hv, K, V]`` (the state at each chunk's
    entry), ``v_new [B, Hv, T, V]`` and ``final_state`` (float32 ``[N, Hv, K, V]``, None unless
    output_final_state). state_v_first: initial_state, h and final_state are ``[.., V, K]``.
    cu_seqlens and chunk_indices describe packed sequences, chunk_size is 64.

    k_low (= kg_low) is what the input dtype left of k: the states, v_new and k then enter the
    products as pairs, ``high + low``, and a fourth result, ``h_low``, is what the input dtype left
    of h.
    """
    _graph_refuses_fwd_h()
    results = run_stage(table.FWD_H, dict(locals()))
    return results[:3] if k_low is None else results


def npu_chunk_kda_fwd_finalize(
    qg_scaled,
    aqk,
    v_new,
    h,
    *,
    output_layout="BSND",
    state_v_first=False,
    cu_seqlens=None,
    chunk_indices=None,
):
    """The output from the query cache, the new values and the states. docs/stages.md, stage 4.

    qg_scaled ``[B, Hv, T, K]``, aqk ``[B, Hv, T, C]``, v_new ``[B, Hv, T, V]``,
    h ``[B, Nc, Hv, K, V]`` (``[.., V, K]`` with state_v_first). Returns o in output_layout:
    ``[B, T, Hv, V]`` for "BSND", ``[B, Hv, T, V]`` for "BNSD"; caches without a batch axis need
    "TND" or "NTD". cu_seqlens and chunk_indices describe packed sequences.
    """
    _graph_refuses_fwd_finalize()
    return run_stage(table.FWD_FINALIZE, dict(locals()))[0]
