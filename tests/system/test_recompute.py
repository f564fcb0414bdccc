# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""disable_recompute=False keeps the inputs alone; its gradients have the saved mode's bits."""

from dataclasses import replace

import mindspore as ms
import numpy as np
import pytest
from hypothesis import given

import hyper_parallel_kda as kda
from benchmarks import memory
from hyper_parallel_kda import chunk_kda_autograd as autograd
from hyper_parallel_kda import stage_table as table
from tests.support import chain, inputs, options, profiles
from tests.support.metrics import same_bits
from tests.system import grid, test_options


def compare_modes(x, layout="BSND", **overrides):
    saved = chain.results(x, layout, **overrides)
    same_bits(saved, chain.results(x, layout, disable_recompute=False, **overrides))


@pytest.mark.parametrize("decay", ["lasting", "mixed", "bound"])
@pytest.mark.parametrize("tokens", grid.TOKENS)
def test_gradients_have_the_bits_of_the_saved_mode(tokens, decay):
    x, layout = grid.case(tokens, decay, seed=4000 + tokens)
    loss = inputs.LOSSES[grid.TOKENS.index(tokens) % 3]
    compare_modes(grid.with_loss(x, loss), layout)


def compare_setups(setup, **changes):
    """The set-up, and with the changes: the same bits. Both come K-first and head-major."""
    x = options.inputs_of(setup)
    same_bits(options.results(setup, x), options.results(replace(setup, **changes), x))


@pytest.mark.parametrize("lengths", [None, (1, 64, 0, 65)], ids=["dense", "packed"])
@pytest.mark.parametrize("name", options.OPTIONS)
def test_every_option(name, lengths):
    changes = {"batch": 2, **options.CORE, **options.OPTIONS[name], "lengths": lengths}
    setup = options.Setup(seed=41, tokens=70, **{**changes, "recompute": False})
    compare_setups(setup, recompute=True)


@profiles.bounded(15)
@given(test_options.setups())
def test_random_combinations(setup):
    """Recomputed or saved, and with states in either order."""
    compare_setups(setup, recompute=not setup.recompute)
    compare_setups(setup, state_v_first=not setup.state_v_first)


@pytest.mark.parametrize("layout", table.LAYOUTS)
@pytest.mark.parametrize("state", [False, True])
def test_packed_sequences(layout, state):
    x = inputs.make_inputs(
        40, tokens=200, decay="weak", initial_state=state, cu_seqlens=(0, 5, 5, 70, 134, 200)
    )
    compare_modes(x, layout)


@pytest.mark.parametrize("gate_dtype", [ms.float32, ms.bfloat16])
def test_gate_dtypes(gate_dtype):
    compare_modes(inputs.make_inputs(42, tokens=85), gate_dtype=gate_dtype)


def test_no_tokens():
    compare_modes(inputs.make_inputs(43, tokens=0, heads=2, initial_state=True))


def kept(x, monkeypatch, **overrides):
    """The tensors by name that one forward keeps for its backward."""
    seen = []
    original = autograd.kept_for_backward

    def record(*arguments):
        seen.append(original(*arguments))
        return seen[-1]

    monkeypatch.setattr(autograd, "kept_for_backward", record)
    chain.results(x, **overrides)
    (names,) = seen
    return {name: value for name, value in names.items() if value is not None}


def test_recompute_keeps_its_inputs_alone(monkeypatch):
    x = inputs.make_inputs(44, tokens=70, initial_state=True)
    assert set(kept(x, monkeypatch, disable_recompute=False)) == set(chain.TENSORS)


def test_saved_mode_keeps_what_the_backward_reads(monkeypatch):
    """Each of them: without it, its stage cannot run. None of the rest: u and qg_scaled."""
    x = inputs.make_inputs(45, tokens=70, initial_state=True)
    names = {*autograd.SCAN_CACHES, *autograd.GRADIENT_CACHES, *autograd.SAVED_INPUTS}
    names.add("initial_state")
    assert set(kept(x, monkeypatch, precise_relay=True)) == names
    assert set(kept(x, monkeypatch)) == {n for n in names if not n.endswith("_low")}


def loss_of(x, named, **overrides):
    d_o, dht = chain.tensor(np.swapaxes(x.d_o, 1, 2)), chain.tensor(x.dht)

    def loss(*values):
        now = {**named, **dict(zip(chain.TENSORS, values, strict=True))}
        output, state = chain.call(x, now, **overrides)
        return (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()

    return loss


@pytest.mark.parametrize("position", range(len(chain.TENSORS)))
def test_one_gradient_alone(position):
    x = inputs.make_inputs(46, tokens=70, initial_state=True)
    named = chain.tensors(x)
    want = chain.results(x)[chain.GRADS[position]]
    for saved in (True, False):
        loss = loss_of(x, named, disable_recompute=saved)
        got = chain.array(
            ms.grad(loss, grad_position=position)(*(named[name] for name in chain.TENSORS))
        )
        if chain.TENSORS[position] in chain.PER_TOKEN:
            got = np.swapaxes(got, 1, 2)
        assert np.array_equal(got, want), saved


class Layer(ms.nn.Cell):
    """A model's layer around the op: MindSpore's own recompute runs it again in the backward."""

    def __init__(self, x, named, **overrides):
        super().__init__()
        self.a_log = ms.Parameter(named["a_log"], name="a_log")
        self.dt_bias = ms.Parameter(named["dt_bias"], name="dt_bias")
        self.x, self.named, self.overrides = x, named, overrides

    def construct(self, q, v):
        named = {**self.named, "q": q, "v": v, "a_log": self.a_log, "dt_bias": self.dt_bias}
        output, state = chain.call(self.x, named, **self.overrides)
        return output.astype(ms.float32).sum() + (state * state).sum()


@pytest.mark.parametrize("saved", [True, False])
def test_recompute_of_the_cell_around_the_op(saved):
    x = inputs.make_inputs(47, tokens=70, initial_state=True)
    named = chain.tensors(x)
    results = []
    for cell_recompute in (False, True):
        layer = Layer(x, named, disable_recompute=saved)
        if cell_recompute:
            layer.recompute()
        run = ms.value_and_grad(layer, (0, 1), layer.trainable_params())
        value, (grads, parameters) = run(named["q"], named["v"])
        results.append([chain.array(t).tobytes() for t in (value, *grads, *parameters)])
    assert results[0] == results[1]


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("write", ["assign", "set_data"])
def test_a_state_that_is_carried_on_before_the_backward(write, trained):
    """A cell that keeps its state in a Parameter writes the next one over it."""
    x = inputs.make_inputs(49, tokens=70, initial_state=True, loss="output")
    named = chain.tensors(x)

    def gradients(saved, carries):
        carried = ms.Parameter(named["initial_state"] * 1.0, name="carried", requires_grad=trained)

        def step(q):
            output, state = chain.call(
                x, {**named, "q": q, "initial_state": carried}, disable_recompute=saved
            )
            if carries and write == "assign":
                ms.ops.assign(carried, ms.ops.stop_gradient(state) * 5.0)
            elif carries:
                carried.set_data(ms.ops.stop_gradient(state) * 5.0)
            return (output.astype(ms.float32) ** 2).sum()

        weights = [carried] if trained else None
        grads = ms.grad(step, 0, weights)(named["q"])
        return [chain.array(t).tobytes() for t in _flat(grads)]

    want = gradients(True, False)
    assert gradients(False, True) == gradients(True, True) == want


def _flat(grads):
    if isinstance(grads, ms.Tensor):
        return [grads]
    return [tensor for part in grads for tensor in _flat(part)]


def test_inference_runs_no_backward_mode(monkeypatch):
    modes = []
    original = autograd.npu_chunk_kda_fwd_prepare

    def record(*arguments, **options):
        modes.append(options["backward_mode"])
        return original(*arguments, **options)

    monkeypatch.setattr(autograd, "npu_chunk_kda_fwd_prepare", record)
    x = inputs.make_inputs(48, tokens=20)
    chain.forward(x)
    chain.results(x, disable_recompute=False)
    chain.results(x)
    assert modes == ["none", "none", "save", "save"]


def test_the_op_stays_refused_inside_a_differentiated_gradient():
    x = inputs.make_inputs(49, tokens=5, heads=1)
    named = chain.tensors(x)

    def first(q):
        def inner(value):
            output, _ = chain.call(x, {**named, "q": value}, disable_recompute=False)
            return output.astype(ms.float32).sum()

        return ms.grad(inner)(q).astype(ms.float32).sum()

    with pytest.raises(RuntimeError, match="gradients of gradients"):
        ms.grad(first)(named["q"])
    assert callable(kda.npu_chunk_kda)
    first(named["q"])


@pytest.mark.parametrize("gate", memory.GATES)
@pytest.mark.parametrize("mode", memory.MODES)
def test_no_more_bytes_wait_for_the_backward_than_if_all_were_saved(mode, gate):
    """What benchmarks/memory.py prints: recomputed, the inputs and not a byte more; saved, all but
    u, qg_scaled, q, k and beta."""
    tokens, heads = 128, 2
    here = sum(memory.kept(tokens, heads, gate, mode).values())
    everything = sum(memory.kept_by_saving_everything(tokens, heads, gate, mode).values())
    spared = 0 if mode == "recompute" else (4 * 256 + 2) * tokens * heads
    assert here == everything - spared
