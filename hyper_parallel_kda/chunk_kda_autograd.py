# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The differentiable chain of six stages."""

import sys
from dataclasses import dataclass

import mindspore as ms
from mindspore.common._grad_function import _Function
from mindspore.graph.api import _pynative_executor
from mindspore.ops.composite.base import _pynative_func_grad_forward

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
from .stage_table import FWD_PREPARE, RANK3_LAYOUTS

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
    disable_recompute: bool
    cu_seqlens: list | None
    chunk_indices: list | None
    precise_relay: bool

    @property
    def recompute(self):
        return not self.disable_recompute

    @property
    def output_layout(self):
        """Token-major whatever the input's layout, so the output's gradient arrives so too."""
        return "TND" if self.layout in RANK3_LAYOUTS else "BSND"

    @property
    def packing(self):
        return {"cu_seqlens": self.cu_seqlens, "chunk_indices": self.chunk_indices}


def _will_differentiate(tensors, needs_input_grad):
    """Whether a backward can follow. A Parameter says it needs a gradient even in inference."""
    if _pynative_executor.grad_flag():
        return any(needs_input_grad)
    return any(
        needs and not isinstance(tensor, ms.Parameter)
        for tensor, needs in zip(tensors, needs_input_grad, strict=False)
    )


def _is_recorded():
    """Whether a differentiated function, or a Cell with set_grad, is among the callers.

    MindSpore's flag alone does not say so: an exception inside a differentiated function leaves it
    on until the next gradient.
    """
    if not _pynative_executor.grad_flag():
        return False
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _pynative_func_grad_forward.__code__:
            return True
        if frame.f_code is ms.nn.Cell.__call__.__code__ and frame.f_locals["self"].requires_grad:
            return True
        frame = frame.f_back
    return False


def _cast(tensor, dtype):
    """astype by a converting copy: MindSpore's Cast takes a millisecond on the CPU."""
    if tensor is None or tensor.dtype == dtype:
        return tensor
    return ms.mint.empty(tensor.shape, dtype=dtype).copy_(tensor)


# What the backward reads of the forward: all of it needs the first ones, bwd_finalize the others.
# Those that end in _low are None without precise_relay.
SCAN_CACHES = ("gk", "aqk", "w", "qg", "kg", "kg_low", "h", "v_new")
GRADIENT_CACHES = (
    "akk",
    "q_hat",
    "k_hat",
    "k_hat_low",
    "h_low",
    "q_rstd",
    "k_rstd",
    "beta_eff",
)
SAVED_INPUTS = ("v", "g", "a_log", "dt_bias")  # by bwd_finalize; and the initial state


def _prepare(inputs, options, backward_mode):
    """The slots of fwd_prepare by name."""
    slots = npu_chunk_kda_fwd_prepare(
        inputs["q"],
        inputs["k"],
        inputs["v"],
        inputs["g"],
        inputs["beta"],
        options.scale,
        options.chunk_size,
        layout=options.layout,
        a_log=inputs["a_log"],
        dt_bias=inputs["dt_bias"],
        epsilon=options.epsilon,
        use_qk_l2norm_in_kernel=options.use_qk_l2norm_in_kernel,
        use_gate_in_kernel=options.use_gate_in_kernel,
        use_beta_sigmoid_in_kernel=options.use_beta_sigmoid_in_kernel,
        allow_neg_eigval=options.allow_neg_eigval,
        safe_gate=options.safe_gate,
        lower_bound=options.lower_bound,
        use_exp2=options.use_exp2,
        backward_mode=backward_mode,
        precise_relay=options.precise_relay,
        **options.packing,
    )
    names = [spec.name for spec in FWD_PREPARE.outputs]
    return dict.fromkeys(names) | dict(zip(names, slots, strict=False))


def _scan(caches, initial_state, options, output_final_state):
    """Adds h, v_new and h_low to the caches, drops u, which nothing reads any more; the final
    state."""
    h, v_new, final_state, *low = npu_chunk_kda_fwd_h(
        caches["kg"],
        caches["w"],
        caches.pop("u"),
        gk=caches["gk"],
        initial_state=initial_state,
        output_final_state=output_final_state,
        chunk_size=options.chunk_size,
        use_exp2=options.use_exp2,
        state_v_first=options.state_v_first,
        k_low=caches["kg_low"],
        **options.packing,
    )
    caches.update(h=h, v_new=v_new, h_low=low[0] if low else None)
    return final_state


@launches_together()
def _forward_stages(inputs, options, backward_mode):
    """The output, the final state, and every cache that a later stage may read."""
    caches = _prepare(inputs, options, backward_mode)
    final_state = _scan(caches, inputs["initial_state"], options, options.output_final_state)
    o = npu_chunk_kda_fwd_finalize(
        caches.pop("qg_scaled"),
        caches["aqk"],
        caches["v_new"],
        caches["h"],
        output_layout=options.output_layout,
        state_v_first=options.state_v_first,
        **options.packing,
    )
    return o, final_state, caches


@launches_together()
def _caches_again(inputs, options):
    """The caches that the forward has let go, by the same stages, hence bit for bit. Launches of
    their own: what they need besides is free before the backward asks for more."""
    caches = _prepare(inputs, options, "save")
    del caches["qg_scaled"]
    _scan(caches, inputs["initial_state"], options, False)
    return caches


@launches_together()
def _backward_stages(inputs, caches, d_o, dht, options, needs):
    """dh0, and the results of bwd_finalize or None where no other gradient is needed.

    Each cache is let go behind the last stage that reads it.
    """
    d_aqk, dv_local, dq_raw = npu_chunk_kda_bwd_prepare(
        caches.pop("aqk"),
        caches["v_new"],
        d_o,
        caches["h"],
        scale=options.scale,
        layout=options.output_layout,
        chunk_size=options.chunk_size,
        state_v_first=options.state_v_first,
        **options.packing,
    )
    dh, dh0, dv_scan, *dh_low = npu_chunk_kda_bwd_dhu(
        caches.pop("qg"),
        caches.pop("kg"),
        caches.pop("w"),
        d_o,
        dv_local,
        options.scale,
        options.chunk_size,
        gk=caches["gk"],
        h0=inputs["initial_state"] if needs["initial_state"] else None,
        dht=dht,
        use_exp2=options.use_exp2,
        state_v_first=options.state_v_first,
        layout=options.output_layout,
        k_low=caches.pop("kg_low"),
        **options.packing,
    )
    del dv_local
    if not _finalizes(needs):
        return dh0, None
    grads = npu_chunk_kda_bwd_finalize(
        caches["q_hat"],
        caches["k_hat"],
        inputs["v"],
        caches["gk"],
        inputs["g"],
        caches["beta_eff"],
        inputs["a_log"],
        inputs["dt_bias"],
        caches["akk"],
        caches["v_new"],
        caches["h"],
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
        q_rstd=caches["q_rstd"],
        k_rstd=caches["k_rstd"],
        use_beta_sigmoid_in_kernel=options.use_beta_sigmoid_in_kernel,
        allow_neg_eigval=options.allow_neg_eigval,
        output_layout=options.layout,
        input_layout=options.layout,
        k_low=caches["k_hat_low"],
        h_low=caches["h_low"],
        dh_low=dh_low[0] if dh_low else None,
        **options.packing,
    )
    return dh0, grads


def _finalizes(needs):
    """Whether a gradient besides that of the initial state is needed."""
    return any(needs[name] for name in TENSORS if name != "initial_state")


def kept_for_backward(inputs, caches, options, needs):
    """The tensors by name that stay alive between forward and backward, and nothing else does.

    Recompute: the inputs, of a state that is a Parameter a copy. Saved: what the backward reads,
    without u, qg_scaled and the inputs whose values have gone into the caches.
    """
    if options.recompute:
        kept = dict(inputs)
        if isinstance(kept["initial_state"], ms.Parameter):
            # It carries the state from call to call: the next one is assigned before the backward.
            kept["initial_state"] = kept["initial_state"].clone()
        return kept
    kept = {name: caches[name] for name in SCAN_CACHES}
    kept["initial_state"] = inputs["initial_state"] if needs["initial_state"] else None
    if _finalizes(needs):
        kept.update({name: inputs[name] for name in SAVED_INPUTS})
        kept.update({name: caches[name] for name in GRADIENT_CACHES})
    return kept


class ChunkKdaFunction(_Function):
    """Positional only; ``apply_chunk_kda`` is the way in."""

    @staticmethod
    def forward(ctx, q, k, v, g, beta, a_log, dt_bias, initial_state, options):
        inputs = dict(zip(TENSORS, (q, k, v, g, beta, a_log, dt_bias, initial_state), strict=True))
        needs = dict(zip(TENSORS, ctx.needs_input_grad, strict=False))
        differentiates = _will_differentiate(inputs.values(), ctx.needs_input_grad)
        saves = differentiates and not options.recompute
        o, final_state, caches = _forward_stages(inputs, options, "save" if saves else "none")
        ctx.set_materialize_grads(False)
        ctx.options = options
        if differentiates:
            kept = kept_for_backward(inputs, caches, options, needs)
            # The caches are nobody else's, and the backward lets them go one by one.
            ctx.caches = {name: kept[name] for name in kept if name not in TENSORS}
            ctx.kept_inputs = tuple(name for name in kept if name in TENSORS)
            ctx.save_for_backward(*(kept[name] for name in ctx.kept_inputs))
            ctx.output_like = (o.shape, o.dtype)
            ctx.beta_dtype = beta.dtype
            ctx.dt_bias_shape = None if dt_bias is None else dt_bias.shape
        return (o, final_state) if options.output_final_state else o

    @staticmethod
    def backward(ctx, d_o, dht=None):
        options = ctx.options
        needs = dict(zip(TENSORS, ctx.needs_input_grad, strict=False))
        nothing = (None,) * (len(TENSORS) + 1)
        if d_o is None and dht is None:
            return nothing
        if _is_recorded():
            # Recording: the stages' results would count as constants, whose gradients are zero.
            raise RuntimeError(
                "npu_chunk_kda: a gradient inside a differentiated function (gradients of "
                "gradients) is not supported; compute it outside that function"
            )
        inputs = dict(zip(ctx.kept_inputs, ctx.saved_tensors, strict=True))
        caches, ctx.caches = ctx.caches, None  # MindSpore runs a backward once
        shape, dtype = ctx.output_like
        d_o = ms.ops.zeros(shape, dtype) if d_o is None else _cast(d_o, dtype)
        if options.recompute:
            caches = _caches_again(inputs, options)
        dh0, grads = _backward_stages(inputs, caches, d_o, dht, options, needs)
        if dh0 is not None:
            dh0 = _cast(dh0, inputs["initial_state"].dtype)
        if grads is None:
            return nothing[:-2] + (dh0, None)
        dq, dk, dv, dbeta, dg, da_log, ddt_bias = grads
        dbeta = _cast(dbeta, ctx.beta_dtype)
        if ctx.dt_bias_shape is None:
            ddt_bias = None
        elif ddt_bias is not None:  # an activated gate leaves dt_bias and a_log without gradients
            ddt_bias = ddt_bias.reshape(ctx.dt_bias_shape)
        da_log = None if inputs["a_log"] is None else da_log
        return dq, dk, dv, dg, dbeta, da_log, ddt_bias, dh0, None


def apply_chunk_kda(tensors, options):
    """``tensors`` by name; returns the output and the final state or None."""
    result = ChunkKdaFunction.apply(*(tensors[name] for name in TENSORS), options)
    return result if options.output_final_state else (result, None)
