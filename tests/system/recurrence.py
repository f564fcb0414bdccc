# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The token recurrence in MindSpore operations, for MindSpore's own automatic differentiation.

Nothing of the package is used here: this is the definition of KDA as a user would write it. float64
on the CPU; on a device without it, pass float32.
"""

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

NAMES = ("q", "k", "v", "g", "beta", "a_log", "dt_bias", "initial_state")
GRADS = ("dq", "dk", "dv", "dg", "dbeta", "da_log", "ddt_bias", "dh0")


def recurrence(q, k, v, g, beta, a_log, dt_bias, state, *, scale, l2norm, beta_sigmoid, bound=-5.0):
    """output [B, H, T, V] and final_state from head-major tensors."""
    if l2norm:
        q = q / ops.sqrt((q * q).sum(-1, keepdims=True) + 1e-6)
        k = k / ops.sqrt((k * k).sum(-1, keepdims=True) + 1e-6)
    if beta_sigmoid:
        beta = 1 / (1 + ops.exp(-beta))
    batch, heads, tokens, width = g.shape
    x = g + dt_bias.reshape(1, heads, 1, width)
    decay = ops.exp(bound / (1 + ops.exp(-ops.exp(a_log).reshape(1, heads, 1, 1) * x)))
    # One batch axis for batch and heads; rows of a token as [1, width], columns as [width, 1].
    rows = {
        name: ops.split(value.reshape(batch * heads, tokens, -1), 1, 1)
        for name, value in (("q", q), ("v", v), ("beta", beta))
    }
    columns = {
        name: ops.split(value.reshape(batch * heads, tokens, width).transpose(0, 2, 1), 1, 2)
        for name, value in (("k", k), ("decay", decay))
    }
    state = state.reshape(batch * heads, width, -1)
    outputs = []
    for t in range(tokens):
        state = columns["decay"][t] * state
        error = rows["v"][t] - ops.bmm(columns["k"][t].transpose(0, 2, 1), state)
        state = state + ops.bmm(columns["k"][t], rows["beta"][t] * error)
        outputs.append(ops.bmm(rows["q"][t], state))
    output = scale * ops.cat(outputs, 1)
    return output.reshape(v.shape), state.reshape(batch, heads, width, -1)


def _tensor(x, dtype):
    return Tensor(np.ascontiguousarray(x), dtype)


def _array(x):
    return x.asnumpy().astype(np.float64)


def results(x, dtype=ms.float64):
    """output, final_state and the gradients of <d_o, output> + <dht, final_state> by name."""
    state = x.initial_state
    if state is None:
        batch, heads, _, v_dim = x.v.shape
        state = np.zeros((batch, heads, x.k.shape[-1], v_dim))
    values = [_tensor(getattr(x, n) if n != "initial_state" else state, dtype) for n in NAMES]
    options = {
        "scale": x.scale,
        "l2norm": x.options["use_qk_l2norm_in_kernel"],
        "beta_sigmoid": x.options["use_beta_sigmoid_in_kernel"],
    }
    d_o = None if x.d_o is None else _tensor(x.d_o, dtype)
    dht = None if x.dht is None else _tensor(x.dht, dtype)

    def loss(*args):
        output, final_state = recurrence(*args, **options)
        total = 0.0
        if d_o is not None:
            total = total + (output * d_o).sum()
        if dht is not None:
            total = total + (final_state * dht).sum()
        return total, output, final_state

    run = ms.value_and_grad(loss, grad_position=tuple(range(len(values))), has_aux=True)
    (_, output, final_state), grads = run(*values)
    out = {"output": _array(output), "final_state": _array(final_state)}
    out.update({name: _array(grad) for name, grad in zip(GRADS, grads, strict=True)})
    if x.initial_state is None:
        out["dh0"] = None
    return out
