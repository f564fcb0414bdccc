# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The four backward stages and the merge. Local, not differentiable, no communication.

Shapes and errors are as in ``forward_stages``.
"""

from . import stage_table as table
from .graph_mode import refuse_graph_mode
from .stage_call import run_stage

# The compiler looks these up by name and meets them before anything else.
_graph_refuses_bwd_prepare = refuse_graph_mode("npu_chunk_kda_bwd_prepare")
_graph_refuses_pre_process_bwd = refuse_graph_mode("npu_chunk_kda_pre_process_bwd")
_graph_refuses_bwd_dhu = refuse_graph_mode("npu_chunk_kda_bwd_dhu")
_graph_refuses_bwd_finalize = refuse_graph_mode("npu_chunk_kda_bwd_finalize")
_graph_refuses_merge_fwd_bwd = refuse_graph_mode("npu_chunk_kda_merge_fwd_bwd")


def npu_chunk_kda_bwd_prepare(
    aqk,
    v_new,
    d_o,
    h,
    *,
    scale,
    layout="BNSD",
    chunk_size=64,
    state_v_first=False,
    cu_seqlens=None,
    chunk_indices=None,
):
    """The gradients that depend on the output's gradient alone. docs/stages.md, stage 5.

    d_o is in ``layout``; aqk, v_new and h (``[.., V, K]`` with state_v_first) are the forward
    caches; scale, chunk_size, cu_seqlens and chunk_indices are the forward's. Returns ``dAqk``
    (float32 ``[B, Hv, T, C]``), ``dv_local`` (``[B, Hv, T, V]``) and ``dq_raw`` (float32
    ``[B, Hv, T, K]``).
    """
    _graph_refuses_bwd_prepare()
    return run_stage(table.BWD_PREPARE, dict(locals()))


def npu_chunk_kda_pre_process_bwd(
    q,
    k,
    w,
    d_o,
    dv,
    scale,
    chunk_size=64,
    *,
    gk,
    cu_seqlens=None,
    layout="BNSD",
    use_exp2=True,
):
    """The map of a sequence's state gradient, for splits over ranks. docs/stages.md, stage 6.

    q (= qg, or qg_scaled with scale = 1), k (= kg), w, dv (= dv_local) head-major, d_o in
    ``layout``, gk in units of log2 or, with use_exp2=False, in nats. B must be 1; of packed
    sequences it covers the first, unless cu_seqlens has two entries: the stretch ``[first,
    second)`` of the tokens, from and to a bound of one sequence or of one of its chunks. scale and
    chunk_size are the forward's. Returns a float32 summary ``[Hv, K, V + K]`` = ``[Eb | Mb]``,
    which means ``d_state_in = Mb @ d_state_out + Eb``.
    """
    _graph_refuses_pre_process_bwd()
    return run_stage(table.PRE_PROCESS_BWD, dict(locals()))[0]


def npu_chunk_kda_bwd_dhu(
    q,
    k,
    w,
    d_o,
    dv,
    scale,
    chunk_size=64,
    *,
    gk,
    h0=None,
    dht=None,
    cu_seqlens=None,
    chunk_indices=None,
    use_exp2=True,
    state_v_first=False,
    layout="BNSD",
    k_low=None,
):
    """The recurrence of the state's gradient, backwards in time. docs/stages.md, stage 7.

    q (= qg, or qg_scaled with scale = 1), k (= kg), w, dv (= dv_local) head-major, d_o in
    ``layout``, gk in units of log2 or, with use_exp2=False, in nats, h0 and dht ``[N, Hv, K, V]``
    float32 or the input dtype; dht None is a zero gradient. Returns ``dh [B, Nc, Hv, K, V]`` (at
    each chunk's exit), ``dh0`` (float32 ``[N, Hv, K, V]``, None unless h0 is given) and
    ``dv_scan [B, Hv, T, V]``. state_v_first: h0, dht and dh0 are ``[.., V, K]``; dh stays K first.
    scale, chunk_size, cu_seqlens and chunk_indices are the forward's.

    k_low (= kg_low) is what the input dtype left of k: it and dh then enter the product of dv_scan
    as pairs, ``high + low``, and a fourth result, ``dh_low``, is what the input dtype left of dh.
    """
    _graph_refuses_bwd_dhu()
    results = run_stage(table.BWD_DHU, dict(locals()))
    return results[:3] if k_low is None else results


def npu_chunk_kda_bwd_finalize(
    q,
    k,
    v,
    gk,
    raw_g,
    beta,
    a_log,
    dt_bias,
    akk,
    v_new,
    h,
    dh,
    dv_scan,
    d_aqk,
    dq_raw,
    *,
    scale,
    lower_bound=-5.0,
    chunk_size=64,
    safe_gate=True,
    use_gate_in_kernel=True,
    use_exp2=True,
    state_v_first=False,
    q_rstd=None,
    k_rstd=None,
    cu_seqlens=None,
    chunk_indices=None,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    output_layout="BNSD",
    input_layout="BNSD",
    k_low=None,
    h_low=None,
    dh_low=None,
):
    """The gradients of the inputs. docs/stages.md, stage 8.

    q and k are q_hat and k_hat, beta is beta_eff, all head-major; v and raw_g are the op's own
    inputs in ``input_layout``, a_log and dt_bias too. gk, akk, v_new and h are caches of the
    forward, dh, dv_scan, d_aqk and dq_raw results of the other backward stages. q_rstd and k_rstd
    say that q and k were normalised. scale, chunk_size, cu_seqlens, chunk_indices and all options
    (lower_bound, safe_gate, use_gate_in_kernel, use_exp2, state_v_first,
    use_beta_sigmoid_in_kernel, allow_neg_eigval) are the forward's.

    Returns ``dq``, ``dk``, ``dv`` (input dtype), ``dbeta`` (float32), ``dg`` (raw_g's dtype), all
    in ``output_layout``, and ``dA_log [Hv]``, ``ddt_bias [Hv, K]`` (float32; None without
    use_gate_in_kernel).

    k_low (= k_hat_low), h_low (of fwd_h) and dh_low (of bwd_dhu) are what the input dtype left of
    k, h and dh: gradients then keep sums over channels that nearly cancel. h_low and dh_low come
    together.
    """
    _graph_refuses_bwd_finalize()
    return run_stage(table.BWD_FINALIZE, dict(locals()))


def npu_chunk_kda_merge_fwd_bwd(
    state, summaries, pre_or_post_num_ranks, rank, *, forward=True, state_v_first=False
):
    """Carries a state over the summaries of neighbouring ranks. docs/stages.md, stage 9.

    state float32 ``[Hv, K, V]``, contiguous, is updated in place and returned; summaries float32
    ``[R, Hv, K, V + K]`` in rank order. forward: ranks ``rank - n .. rank - 1`` in that order, with
    n = pre_or_post_num_ranks; else ranks ``rank + n .. rank + 1``. n = 0 leaves state alone.
    state_v_first: state is ``[Hv, V, K]``; summaries never change their order.
    """
    _graph_refuses_merge_fwd_bwd()
    return run_stage(table.MERGE_FWD_BWD, dict(locals()))[0]
