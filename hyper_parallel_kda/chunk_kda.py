# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The public differentiable op."""

from . import stage_table as table
from .checks import check_stage
from .chunk_kda_autograd import TENSORS, Options, apply_chunk_kda
from .graph_mode import refuse_graph_mode
from .stage_table import AttrSpec, StageSpec

# npu_chunk_kda's arguments in the terms of the stage table, for the same checks as the stages have.
# It has no kernel of its own.
OP = StageSpec(
    "chunk_kda",
    "ChunkKda",
    inputs=(*table.FWD_PREPARE.inputs, table.FWD_H.input("initial_state")),
    attrs=(
        *(attr for attr in table.FWD_PREPARE.attrs if attr.name != "backward_mode"),
        AttrSpec("output_final_state", "bool", False),
        AttrSpec("disable_recompute", "bool", True),
        table.STATE_V_FIRST,
    ),
    outputs=(),
)
_refuse_graph_mode = refuse_graph_mode("npu_chunk_kda")


def npu_chunk_kda(
    q,
    k,
    v,
    g,
    beta,
    scale,
    chunk_size=64,
    *,
    layout="BNSD",
    output_final_state=False,
    safe_gate=False,
    lower_bound=-5.0,
    use_gate_in_kernel=True,
    a_log=None,
    dt_bias=None,
    cu_seqlens=None,
    chunk_indices=None,
    initial_state=None,
    disable_recompute=True,
    state_v_first=False,
    epsilon=1e-6,
    use_qk_l2norm_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    use_exp2=True,
    precise_relay=False,
):
    """Kimi Delta Attention over chunks, differentiable in every tensor argument.

    Per token and head, with ``S`` the state ``[K, V]``, ``a`` the log decay, ``b`` the update rate:
    ``S <- diag(exp(a)) S;  S <- S + b k (v - S^T k)^T;  o = scale * S^T q``.

    Args:
        q, k: ``[B, Hk, T, K]`` for layout "BNSD", ``[B, T, Hk, K]`` for "BSND", ``[Hk, T, K]`` for
            "NTD", ``[T, Hk, K]`` for "TND". bfloat16 or float16, K = 128.
        v: the same with Hv heads and width V = 128. Hv is a multiple of Hk; value head i reads
            query/key head ``i // (Hv / Hk)``.
        g: gate, shaped like v with width K. q's dtype or float32.
        beta: like v without the last axis. q's dtype or float32.
        scale: factor of q, usually ``K ** -0.5``.
        chunk_size: 64.
        output_final_state: also return the state after the last token.
        safe_gate, lower_bound: the log decay in nats is
            ``lower_bound * sigmoid(exp(a_log) * (g + dt_bias))``, with lower_bound in [-5, 0);
            without safe_gate it is ``-exp(a_log) * softplus(g + dt_bias)``.
        use_gate_in_kernel: False: g is the log decay in nats, at most 0, whatever safe_gate says;
            -inf forgets the state.
        a_log, dt_bias: float32, ``[Hv]`` and ``[Hv, K]`` or ``[Hv * K]``; dt_bias None is zero.
            Neither is read, and neither has a gradient, without use_gate_in_kernel.
        cu_seqlens: bounds of N packed sequences on the token axis, N + 1 integers from 0 to T that
            do not decrease, as a list, tuple, NumPy array or Tensor (read on the host, once a
            call). Needs B = 1 or a layout without a batch axis. None: each batch row is one
            sequence, N = B.
        chunk_indices: the (sequence, chunk) pairs of all chunks, ``[Nc, 2]`` or flat, checked
            against cu_seqlens; None: made here.
        initial_state: ``[N, Hv, K, V]``, float32 or q's dtype; None is zero.
        epsilon, use_qk_l2norm_in_kernel: divide q and k by ``sqrt(sum(x * x) + epsilon)``.
        use_beta_sigmoid_in_kernel, allow_neg_eigval: beta is the argument of a sigmoid; of twice a
            sigmoid.
        disable_recompute: True keeps what the forward has computed for the backward; False keeps
            the inputs alone, and the backward computes the rest again, to the same bits.
        state_v_first: states are ``[N, Hv, V, K]``.
        use_exp2: unit of the cumulative gate that the stages hand on; no result depends on it.
        precise_relay: hand what carries a state and its gradient from chunk to chunk on as pairs of
            numbers of q's dtype. Gradients of a loss on the final state then keep sums that nearly
            cancel. docs/accuracy.md has figures, and what it costs.

    Returns:
        ``(attn_out, final_state)``: attn_out ``[B, T, Hv, V]``, or ``[T, Hv, V]`` for "NTD" and
        "TND", in q's dtype; final_state float32 ``[N, Hv, K, V]``, or None unless
        output_final_state. Both may take part in a loss. Each gradient has its input's dtype and
        layout.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: the op library is missing, lacks a stage, or a stage failed.

    docs/stages.md has the mathematics. It runs in PyNative mode, also under
    ``ms.jit(capture_mode="bytecode")`` and in a Cell with a bprop of its own; the default
    ``ms.jit`` and GRAPH_MODE cells raise RuntimeError while they compile.
    """
    _refuse_graph_mode()
    values, _ = check_stage(OP, dict(locals()), "npu_chunk_kda")
    options = Options(**{name: values[name] for name in Options.__dataclass_fields__})
    return apply_chunk_kda({name: values[name] for name in TENSORS}, options)
