# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The differentiable chain of six stages."""

from dataclasses import dataclass

import mindspore as ms
from mindspore.common._grad_function import _Function
from mindspore.graph.api import _pynative_executor

from .backward_stages import (
    npu_chunk_kda_bwd_dhu,
    npu_chunk_kda_bwd_finalize,
    npu_chunk_kda_bwd_prepare,
)
from .forward_stages import (
    npu_chunk_kda_fwd_finalize,
    npu_chunk_kda_fwd_h,
    npu_chunk_kda_fwd_prepare,
)
from .stage_call import launches_together

# Token-major whatever the input's layout, so the output's gradient arrives token-major too.
OUTPUT_LAYOUT = "BSND"

TENSORS = ("q", "k", "v", "g", "beta", "a_log", "dt_bias", "initial_state")


@dataclass(frozen=True)
class Options:
    """What npu_chunk_kda takes besides tensors, checked."""

    scale: float
    chunk_size: int
    layout: str
    output_final_state: bool
    safe_gate: bool
    lower_bound: float
    use_gate_in_kernel: bool
    state_v_first: bool
    epsilon: float
    use_qk_l2norm_in_kernel: bool
    use_beta_sigmoid_in_kernel: bool
    allow_neg_eigval: bool
    use_exp2: bool


def _will_differentiate(tensors, needs_input_grad):
    """Whether a backward can follow. A Parameter says it needs a gradient even in inference."""
    if _pynative_executor.grad_flag():
        return any(needs_input_grad)
    return any(
        needs and not isinstance(tensor, ms.Parameter)
        for tensor, needs in zip(tensors, needs_input_grad, strict=False)
    )


def _cast(tensor, dtype):
    """astype by a converting copy: MindSpore's Cast takes a millisecond on the CPU."""
    if tensor is None or tensor.dtype == dtype:
        return tensor
    return ms.mint.empty(tensor.shape, dtype=dtype).copy_(tensor)


@launches_together()
def _forward_stages(tensors, options, saves):
    """The output, the final state, and what the backward needs besides the inputs."""
    q, k, v, g, beta, a_log, dt_bias, initial_state = tensors
    gk, aqk, akk, w, u, qg, kg, qg_scaled, q_hat, k_hat, q_rstd, k_rstd, beta_eff = (
        npu_chunk_kda_fwd_prepare(
            q,
            k,
            v,
            g,
            beta,
            options.scale,
            options.chunk_size,
            layout=options.layout,
            a_log=a_log,
            dt_bias=dt_bias,
            epsilon=options.epsilon,
            use_qk_l2norm_in_kernel=options.use_qk_l2norm_in_kernel,
            use_gate_in_kernel=options.use_gate_in_kernel,
            use_beta_sigmoid_in_kernel=options.use_beta_sigmoid_in_kernel,
            allow_neg_eigval=options.allow_neg_eigval,
            safe_gate=options.safe_gate,
            lower_bound=options.lower_bound,
            use_exp2=options.use_exp2,
            backward_mode="save" if saves else "none",
        )
    )
    h, v_new, final_state = npu_chunk_kda_fwd_h(
        kg,
        w,
        u,
        gk=gk,
        initial_state=initial_state,
        output_final_state=options.output_final_state,
        chunk_size=options.chunk_size,
        use_exp2=options.use_exp2,
        state_v_first=options.state_v_first,
    )
    o = npu_chunk_kda_fwd_finalize(
        qg_scaled,
        aqk,
        v_new,
        h,
        output_layout=OUTPUT_LAYOUT,
        state_v_first=options.state_v_first,
    )
    caches = (gk, aqk, akk, w, qg, kg, q_hat, k_hat, q_rstd, k_rstd, beta_eff, h, v_new)
    return o, final_state, caches


@launches_together()
def _backward_stages(saved, d_o, dht, options, needs):
    """dh0, and the results of bwd_finalize or None where no other gradient is needed."""
    v, g, beta, a_log, dt_bias, initial_state, *caches = saved
    gk, aqk, akk, w, qg, kg, q_hat, k_hat, q_rstd, k_rstd, beta_eff, h, v_new = caches
    d_aqk, dv_local, dq_raw = npu_chunk_kda_bwd_prepare(
        aqk,
        v_new,
        d_o,
        h,
        scale=options.scale,
        layout=OUTPUT_LAYOUT,
        chunk_size=options.chunk_size,
        state_v_first=options.state_v_first,
    )
    dh, dh0, dv_scan = npu_chunk_kda_bwd_dhu(
        qg,
        kg,
        w,
        d_o,
        dv_local,
        options.scale,
        options.chunk_size,
        gk=gk,
        h0=initial_state if needs["initial_state"] else None,
        dht=dht,
        use_exp2=options.use_exp2,
        state_v_first=options.state_v_first,
        layout=OUTPUT_LAYOUT,
    )
    if not any(needs[name] for name in TENSORS if name != "initial_state"):
        return dh0, None
    grads = npu_chunk_kda_bwd_finalize(
        q_hat,
        k_hat,
        v,
        gk,
        g,
        beta_eff,
        a_log,
        dt_bias,
        akk,
        v_new,
        h,
        dh,
        dv_scan,
        d_aqk,
        dq_raw,
        scale=options.scale,
        lower_bound=options.lower_bound,
        chunk_size=options.chunk_size,
        safe_gate=options.safe_gate,
        use_gate_in_kernel=options.use_gate_in_kernel,
        use_exp2=options.use_exp2,
        state_v_first=options.state_v_first,
        q_rstd=q_rstd,
        k_rstd=k_rstd,
        use_beta_sigmoid_in_kernel=options.use_beta_sigmoid_in_kernel,
        allow_neg_eigval=options.allow_neg_eigval,
        output_layout=options.layout,
        input_layout=options.layout,
    )
    return dh0, grads


class ChunkKdaFunction(_Function):
    """Positional only; ``apply_chunk_kda`` is the way in."""

    @staticmethod
    def forward(ctx, q, k, v, g, beta, a_log, dt_bias, initial_state, options):
        tensors = (q, k, v, g, beta, a_log, dt_bias, initial_state)
        saves = _will_differentiate(tensors, ctx.needs_input_grad)
        o, final_state, caches = _forward_stages(tensors, options, saves)
        ctx.set_materialize_grads(False)
        ctx.options = options
        if saves:
            raw = (v, g, beta, a_log, dt_bias, initial_state)
            ctx.save_for_backward(*raw, *caches)
        return (o, final_state) if options.output_final_state else o

    @staticmethod
    def backward(ctx, d_o, dht=None):
        options = ctx.options
        needs = dict(zip(TENSORS, ctx.needs_input_grad, strict=False))
        nothing = (None,) * (len(TENSORS) + 1)
        if d_o is None and dht is None:
            return nothing
        if _pynative_executor.grad_flag():
            # Recording: the stages' results would count as constants, whose gradients are zero.
            raise NotImplementedError(
                "npu_chunk_kda: a gradient inside a differentiated function (gradients of "
                "gradients) is not implemented; compute it outside that function"
            )
        _, _, beta, a_log, dt_bias, initial_state, *_, v_new = ctx.saved_tensors
        if d_o is None:
            batch, heads, tokens, width = v_new.shape
            d_o = ms.ops.zeros((batch, tokens, heads, width), v_new.dtype)
        d_o = _cast(d_o, v_new.dtype)
        dh0, grads = _backward_stages(ctx.saved_tensors, d_o, dht, options, needs)
        if dh0 is not None:
            dh0 = _cast(dh0, initial_state.dtype)
        if grads is None:
            return nothing[:-2] + (dh0, None)
        dq, dk, dv, dbeta, dg, da_log, ddt_bias = grads
        dbeta = _cast(dbeta, beta.dtype)
        ddt_bias = None if dt_bias is None else ddt_bias.reshape(dt_bias.shape)
        return dq, dk, dv, dg, dbeta, da_log if a_log is not None else None, ddt_bias, dh0, None


def apply_chunk_kda(tensors, options):
    """``tensors`` by name; returns the output and the final state or None."""
    result = ChunkKdaFunction.apply(*(tensors[name] for name in TENSORS), options)
    return result if options.output_final_state else (result, None)
