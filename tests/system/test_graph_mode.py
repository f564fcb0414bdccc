# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""ms.jit(capture_mode="bytecode") and Cells with bprop around the op: the same bits as without."""

import mindspore as ms
import numpy as np
import pytest

from tests.support import chain, inputs

NAMES = chain.TENSORS


def make(tokens=70, seed=40, layout="BSND", **options):
    x = inputs.make_inputs(
        seed, tokens=tokens, heads=2, decay="medium", initial_state=True, **options
    )
    named = chain.tensors(x, layout)
    return x, [named[name] for name in NAMES]


def op(x, values, layout="BSND", **options):
    return chain.call(x, dict(zip(NAMES, values, strict=True)), layout, **options)


def loss_of(x, forward):
    d_o, dht = chain.tensor(np.swapaxes(x.d_o, 1, 2)), chain.tensor(x.dht)

    def loss(*values):
        output, state = forward(*values)
        return (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()

    return loss


def same_bits(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and np.array_equal(chain.array(a), chain.array(b))


POSITIONS = tuple(range(len(NAMES)))


def test_forward_in_a_bytecode_jit():
    """Of several lengths: the second one finds the function compiled for the first."""
    x, _ = make()

    def forward(*values):
        output, state = op(x, values)
        return output * 2.0, state + 1.0

    run = ms.jit(forward, capture_mode="bytecode")
    for tokens in (70, 33, 70):
        _, values = make(tokens)
        same_bits(run(*values), forward(*values))


@pytest.mark.parametrize("where", ["around the op", "around the loss", "around the gradient"])
def test_gradients_in_a_bytecode_jit(where):
    x, values = make()

    def forward(*values):
        return op(x, values)

    def jit(function):
        return ms.jit(function, capture_mode="bytecode")

    want = ms.grad(loss_of(x, forward), grad_position=POSITIONS)(*values)
    if where == "around the op":
        run = ms.grad(loss_of(x, jit(forward)), grad_position=POSITIONS)
    elif where == "around the loss":
        run = ms.grad(jit(loss_of(x, forward)), grad_position=POSITIONS)
    else:
        gradient = ms.grad(loss_of(x, forward), grad_position=POSITIONS)

        def backward(*values):
            return gradient(*values)

        run = jit(backward)
    for _ in range(2):  # compiled once, then taken from the cache
        same_bits(run(*values), want)


def test_packed_recomputed_and_values_first_in_a_bytecode_jit():
    """Forward and every gradient. MindSpore does not look again at what a compiled function finds
    outside its arguments: here none of it changes."""
    bounds = (0, 17, 17, 90, 110)
    x, values = make(110, inputs.fresh_seed(), "TND", cu_seqlens=bounds)
    d_o = chain.tensor(np.swapaxes(x.d_o, 1, 2)[0])
    dht = chain.tensor(np.swapaxes(x.dht, 2, 3))
    values[-1] = chain.tensor(np.swapaxes(x.initial_state, 2, 3))
    options = {"layout": "TND", "state_v_first": True, "disable_recompute": False}

    def forward(*values):
        return op(x, values, **options)

    def loss(*values):
        output, state = forward(*values)
        return (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()

    same_bits(ms.jit(forward, capture_mode="bytecode")(*values), forward(*values))
    want = ms.grad(loss, grad_position=POSITIONS)(*values)
    run = ms.grad(ms.jit(loss, capture_mode="bytecode"), grad_position=POSITIONS)
    for _ in range(2):
        same_bits(run(*values), want)
    plain = chain.results(x, "NTD")  # PyNative, and none of these options
    found = dict(zip(chain.GRADS, map(chain.array, want), strict=True))
    found["dh0"] = np.swapaxes(found["dh0"], 2, 3)
    for name in chain.GRADS:
        if name in ("dq", "dk", "dv", "dg", "dbeta"):
            found[name] = np.swapaxes(found[name], 0, 1)[None]
        assert plain[name].any() and np.array_equal(found[name], plain[name]), (name, x.case)


def test_cell_with_parameters_in_a_bytecode_jit():
    x, values = make()

    class Layer(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.a_log = ms.Parameter(values[NAMES.index("a_log")], name="a_log")
            self.dt_bias = ms.Parameter(values[NAMES.index("dt_bias")], name="dt_bias")

        def construct(self, q, k, v, g, beta, initial_state):
            rest = (q, k, v, g, beta, self.a_log, self.dt_bias, initial_state)
            output, state = op(x, rest)
            return output.astype(ms.float32).sum() + state.sum()

    layer = Layer()
    parameters = layer.trainable_params()
    given = values[:5] + values[7:]
    want_loss, want = ms.value_and_grad(layer, None, parameters)(*given)
    run = ms.value_and_grad(ms.jit(layer, capture_mode="bytecode"), None, parameters)
    for _ in range(2):
        loss, got = run(*given)
        same_bits([loss, *got], [want_loss, *want])
    assert all(chain.array(grad).any() for grad in want)


def test_cell_with_its_own_backward():
    """A bprop that calls the op and its gradient, as custom cells of models do."""
    x, values = make()

    class Layer(ms.nn.Cell):
        def construct(self, *values):
            return op(x, values)

        def bprop(self, *arguments):
            *values, _, upstream = arguments
            d_o, dht = upstream

            def loss(*values):
                output, state = op(x, values)
                return (output.astype(ms.float32) * d_o.astype(ms.float32)).sum() + (
                    state * dht
                ).sum()

            return ms.grad(loss, grad_position=POSITIONS)(*values)

    layer = Layer()
    want = ms.grad(loss_of(x, lambda *v: op(x, v)), grad_position=POSITIONS)(*values)
    same_bits(layer(*values), op(x, values))
    same_bits(ms.grad(loss_of(x, layer), grad_position=POSITIONS)(*values), want)
