# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""How the differentiable op wires its six stages, over a library that computes nothing.

Each output of the fake library holds its position in the C signature, so a gradient's value says
which output it came from.
"""

import mindspore as ms
import pytest
from mindspore.graph.api import _pynative_executor

import hyper_parallel_kda as kda
from hyper_parallel_kda import chunk_kda_autograd as autograd
from hyper_parallel_kda import stage_table as table

NAMES = ("q", "k", "v", "g", "beta", "a_log", "dt_bias", "initial_state")
SLOTS = ("dq", "dk", "dv", "dg", "dbeta", "da_log", "ddt_bias")


def position(stage, output):
    outputs = [spec.name for spec in stage.outputs]
    return len(stage.inputs) + len(stage.attrs) + 1 + outputs.index(output)


def run(x, names=NAMES, output=1.0, state=1.0, **changes):
    """The gradients by name of a loss with the given weights of output and final state."""
    tensors = {name: getattr(x, name) for name in NAMES}
    tensors.update({name: value for name, value in changes.items() if name in NAMES})

    def loss(*differentiated):
        arguments = {**tensors, **dict(zip(names, differentiated, strict=True))}
        o, final_state = kda.npu_chunk_kda(
            **arguments, scale=0.125, output_final_state=bool(state), **x.options
        )
        total = o.astype(ms.float32).sum() * output if output else 0.0
        return total + final_state.sum() * state if state else total

    positions = tuple(range(len(names)))
    grads = ms.grad(loss, grad_position=positions)(*(tensors[name] for name in names))
    return dict(zip(names, grads if isinstance(grads, tuple) else (grads,), strict=True))


@pytest.fixture
def calls(monkeypatch):
    """The stages that run, with the values they were given."""
    seen = []
    original = autograd.npu_chunk_kda_fwd_prepare.__globals__["run_stage"]

    def record(stage, values, function=None):
        seen.append((stage.name, values))
        return original(stage, values, function)

    for function in (autograd.npu_chunk_kda_fwd_prepare, autograd.npu_chunk_kda_bwd_dhu):
        monkeypatch.setitem(function.__globals__, "run_stage", record)
    return seen


FORWARD = ["fwd_prepare", "fwd_h", "fwd_finalize"]
BACKWARD = ["bwd_prepare", "bwd_dhu", "bwd_finalize"]


@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
@pytest.mark.parametrize("output, state", [(1, 0), (0, 1), (1, 1)])
def test_gradients_come_from_their_slots(fake, make_inputs, calls, layout, output, state):
    x = make_inputs(layout)
    grads = run(x, output=output, state=state)
    assert [name for name, _ in calls] == FORWARD + BACKWARD
    for name, slot in zip(NAMES, SLOTS, strict=False):
        got, given = grads[name], getattr(x, name)
        assert (got.shape, got.dtype) == (given.shape, given.dtype)
        expected = position(table.BWD_FINALIZE, slot)
        assert (got.astype(ms.float32).asnumpy() == expected).all()
    assert (grads["initial_state"].asnumpy() == position(table.BWD_DHU, "dh0")).all()
    values = dict(calls)
    assert values["bwd_finalize"]["input_layout"] == layout
    assert values["bwd_finalize"]["output_layout"] == layout
    assert values["bwd_dhu"]["layout"] == values["bwd_prepare"]["layout"] == "BSND"


def test_absent_gradients_are_zero(fake, make_inputs, calls):
    run(make_inputs(), output=1, state=0)
    assert dict(calls)["bwd_dhu"]["dht"] is None
    calls.clear()
    run(make_inputs(), output=0, state=1)
    values = dict(calls)
    assert (values["bwd_dhu"]["dht"].asnumpy() == 1).all()
    d_o = values["bwd_prepare"]["d_o"]
    assert d_o.shape == (2, 65, 3, 128) and not d_o.astype(ms.float32).asnumpy().any()


def test_dtypes_and_shapes_of_gradients_follow_the_inputs(fake, make_inputs):
    x = make_inputs()
    changes = {name: getattr(x, name).astype(ms.float32) for name in ("g", "beta")}
    changes["dt_bias"] = x.dt_bias.reshape(-1)
    changes["initial_state"] = x.initial_state.astype(ms.bfloat16)
    grads = run(x, **changes)
    for name, given in changes.items():
        assert (grads[name].shape, grads[name].dtype) == (given.shape, given.dtype), name
    x.dt_bias = None
    run(x, names=("q", "a_log"))


def test_only_what_needs_a_gradient_is_computed(fake, make_inputs, calls):
    grads = run(make_inputs(), names=("q",))
    assert (grads["q"].shape) == (2, 3, 65, 128)
    assert dict(calls)["bwd_dhu"]["h0"] is None
    calls.clear()
    run(make_inputs(), names=("initial_state",))
    assert [name for name, _ in calls] == FORWARD + BACKWARD[:2]


def test_inference_saves_nothing(fake, make_inputs, calls):
    x = make_inputs()
    o, final_state = kda.npu_chunk_kda(**x.arguments())
    assert o.shape == (2, 65, 3, 128) and o.dtype == ms.bfloat16 and final_state is None
    assert dict(calls)["fwd_prepare"]["backward_mode"] == "none"
    calls.clear()
    parameter = ms.Parameter(x.a_log)
    kda.npu_chunk_kda(**x.arguments(a_log=parameter))
    assert dict(calls)["fwd_prepare"]["backward_mode"] == "none"
    calls.clear()
    run(x)
    assert dict(calls)["fwd_prepare"]["backward_mode"] == "save"


def test_inside_a_cell_with_parameters(fake, make_inputs):
    x = make_inputs()

    class Layer(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.a_log = ms.Parameter(x.a_log, name="a_log")
            self.dt_bias = ms.Parameter(x.dt_bias, name="dt_bias")

        def construct(self, q):
            o, _ = kda.npu_chunk_kda(**x.arguments(q=q, a_log=self.a_log, dt_bias=self.dt_bias))
            return o.astype(ms.float32).sum()

    for recompute in (False, True):
        layer = Layer()
        if recompute:
            layer.recompute()
        _, grads = ms.value_and_grad(layer, None, layer.trainable_params())(x.q)
        assert [grad.shape for grad in grads] == [(3,), (3, 128)]
        assert (grads[0].asnumpy() == position(table.BWD_FINALIZE, "da_log")).all()


def nested_gradients(x):
    """Calls that differentiate the op inside something that is differentiated itself."""

    def first(q):
        return run(x, names=("q",), q=q)["q"].astype(ms.float32).sum()

    class Outer(ms.nn.Cell):
        def construct(self, q):
            return first(q)

    recorded = Outer()
    recorded.set_grad(True)

    def through_vjp(q):
        output, backward = ms.vjp(first, q)
        return backward(ms.ops.ones_like(output)).astype(ms.float32).sum()

    return {
        "function": lambda: ms.grad(first)(x.q),
        "value_and_grad": lambda: ms.value_and_grad(first)(x.q),
        "cell": lambda: ms.grad(Outer())(x.q),
        "cell with set_grad": lambda: recorded(x.q),
        "vjp": lambda: ms.grad(through_vjp)(x.q),
    }


@pytest.mark.parametrize("how", ["function", "value_and_grad", "cell", "cell with set_grad", "vjp"])
def test_gradients_of_gradients_are_refused(fake, make_inputs, how):
    x = make_inputs()
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        nested_gradients(x)[how]()
    for _ in range(2):
        run(x)


@pytest.mark.parametrize("where", ["before the op", "in its checks", "behind it"])
@pytest.mark.parametrize("as_cell", [False, True])
def test_exception_in_a_differentiated_function_leaves_the_next_gradient_alone(
    fake, make_inputs, where, as_cell
):
    """MindSpore still says that it records then, and its own indexing may fail."""
    x = make_inputs()
    want = run(x)["q"].astype(ms.float32).asnumpy()

    def failing(q):
        if where != "before the op":
            wrong = {"v": None} if where == "in its checks" else {}
            kda.npu_chunk_kda(**x.arguments(q=q, **wrong))
        raise ValueError("of the caller")

    class Layer(ms.nn.Cell):
        def construct(self, q):
            return failing(q)

    try:
        with pytest.raises((TypeError, ValueError)):
            ms.grad(Layer() if as_cell else failing)(x.q)
        for _ in range(2):
            assert (run(x)["q"].astype(ms.float32).asnumpy() == want).all()
    finally:
        _pynative_executor.clear_res()


def test_failure_in_the_backward_surfaces_and_the_next_call_works(fake, make_inputs):
    x = make_inputs()
    for stage in (table.BWD_PREPARE, table.BWD_DHU, table.BWD_FINALIZE):
        fake.fail(stage.symbol)
        with pytest.raises(RuntimeError, match=f"{stage.symbol} failed with status 361001: made"):
            run(x)["q"].asnumpy()
        fake.fail("")
        run(x)


def test_stages_behind_a_failure_are_skipped(fake, make_inputs):
    x = make_inputs()
    arguments = x.arguments()
    kda.npu_chunk_kda(**arguments)
    assert fake.trace.startswith(table.FWD_FINALIZE.op)
    fake.fail(table.FWD_PREPARE.symbol)
    with pytest.raises(RuntimeError, match=f"{table.FWD_PREPARE.symbol} failed with status"):
        kda.npu_chunk_kda(**arguments)
    assert fake.trace.startswith(table.FWD_PREPARE.op)
    fake.fail("")
    kda.npu_chunk_kda(**arguments)
    assert fake.trace.startswith(table.FWD_FINALIZE.op)
