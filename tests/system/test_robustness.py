# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Corner cases, isolation of bad values, reproducibility, bad calls and recovery from them."""

from dataclasses import replace

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from tests.support import chain, inputs, metrics
from tests.support.metrics import same_bits
from tests.system import grid


@pytest.mark.parametrize("tokens", [65, 200])
def test_bits_do_not_depend_on_blocks_or_threads(simulator, tokens):
    x = inputs.make_inputs(11, batch=2, tokens=tokens, heads=3, decay="mixed", initial_state=True)
    first = None
    for cores in (24, 1, 3, 20):
        for threads in (1, 2):
            simulator.cores(cores)
            simulator.threads(threads)
            got = chain.results(x)
            first = first or got
            same_bits(first, got, (cores, threads))


def test_same_call_same_bits():
    x = inputs.make_inputs(12, tokens=130, heads=2, decay="medium", initial_state=True)
    same_bits(chain.results(x), chain.results(x))


@pytest.mark.parametrize("decay", ["medium", "mixed"])
def test_subnormal_numbers_do_not_matter(simulator, decay):
    """The chip may take them for zero or not. tests/stages shows them in the caches."""
    x = inputs.make_inputs(15, tokens=300, heads=3, decay=decay, initial_state=True)
    flushed = chain.results(x)
    assert simulator.subnormals(1) == 0
    same_bits(flushed, chain.results(x))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("layout", grid.LAYOUTS)
@pytest.mark.parametrize("with_state", [True, False])
def test_no_tokens(batch, layout, with_state):
    x = inputs.make_inputs(1, batch=batch, tokens=0, heads=2, initial_state=with_state)
    got = chain.results(x, layout)
    assert got["output"].shape == (batch, 2, 0, 128)
    want = x.initial_state if with_state else np.zeros((batch, 2, 128, 128))
    assert np.array_equal(got["final_state"], want)
    assert got["dq"].shape == (batch, 2, 0, 128)
    assert not got["da_log"].any() and not got["ddt_bias"].any()
    if with_state:
        assert np.array_equal(got["dh0"], x.dht)


@pytest.mark.parametrize("name", ["q", "k", "v", "g", "beta", "initial_state", "d_o", "dht"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_value_stays_in_its_sequence_and_head(name, value):
    x = inputs.make_inputs(13, batch=2, tokens=70, heads=2, decay="medium", initial_state=True)
    poisoned = getattr(x, name).copy()
    poisoned[(1, 0) + (3,) * (poisoned.ndim - 2)] = value
    clean, got = chain.results(x), chain.results(replace(x, **{name: poisoned}))
    for tensor in ("output", "final_state", "dq", "dk", "dv", "dg", "dbeta", "dh0"):
        for b, h in ((0, 0), (0, 1), (1, 1)):
            assert np.array_equal(got[tensor][b, h], clean[tensor][b, h]), (tensor, b, h)
    for tensor in ("da_log", "ddt_bias"):
        assert np.array_equal(got[tensor][1], clean[tensor][1]), tensor
    if value == np.inf and name in ("g", "beta"):
        return  # saturates the sigmoid: a gate at its bound, a beta of one
    assert not all(np.isfinite(v[1, 0]).all() for v in got.values() if v is not None and v.ndim > 2)


def test_bad_value_leaves_the_past_alone():
    """Causality: what comes after a token cannot change the output before it."""
    x = inputs.make_inputs(14, tokens=140, heads=2, decay="lasting")
    v = x.v.copy()
    v[0, 0, 64] = np.nan
    clean, got = chain.forward(x)[0], chain.forward(replace(x, v=v))[0]
    assert np.array_equal(clean[:, :, :64], got[:, :, :64])
    assert not np.isfinite(got[0, 0, 64]).all()


def test_inputs_are_not_modified():
    x = inputs.make_inputs(15, tokens=66, decay="medium", initial_state=True)
    named = chain.tensors(x)
    before = {n: chain.array(t) for n, t in named.items()}
    chain.call(x, named)
    for name, value in before.items():
        assert np.array_equal(value, chain.array(named[name])), name


def test_absent_upstream_gradient_is_zero():
    x = inputs.make_inputs(16, tokens=66, decay="medium", initial_state=True)
    for loss, zero in (("output", "dht"), ("final_state", "d_o")):
        part = grid.with_loss(x, loss)
        with_zero = replace(part, **{zero: np.zeros_like(getattr(x, zero))})
        same_bits(chain.results(part), chain.results(with_zero), loss)


def test_gradients_of_some_inputs_only():
    x = inputs.make_inputs(17, tokens=66, decay="medium", initial_state=True)
    whole = chain.results(x)
    named = chain.tensors(x)
    d_o = chain.tensor(np.swapaxes(x.d_o, 1, 2))
    dht = chain.tensor(x.dht)
    for name, grad in (("v", "dv"), ("initial_state", "dh0"), ("a_log", "da_log")):

        def loss(value, name=name):
            output, state = chain.call(x, {**named, name: value})
            return (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()

        got = chain.array(ms.grad(loss)(named[name]))
        got = np.swapaxes(got, 1, 2) if name == "v" else got
        assert np.array_equal(got, whole[grad]), name


def bad_calls():
    """(what is wrong, error, words of the message, the call) of every kind of bad input."""
    x = inputs.make_inputs(18, tokens=20, heads=2)
    good = chain.tensors(x)
    wide = chain.tensor(np.zeros((1, 20, 2, 64), np.float32), ms.bfloat16)
    heads = chain.tensor(np.zeros((1, 20, 3, 128), np.float32), ms.bfloat16)

    def run(overrides=None, **changes):
        return lambda: chain.call(x, {**good, **changes}, **(overrides or {}))

    float32 = good["q"].astype(ms.float32)
    wrong = (TypeError, ValueError)
    return {
        "float32 q": (wrong, "q", run(q=float32)),
        "int v": (wrong, "v", run(v=good["v"].astype(ms.int32))),
        "k of another width": (wrong, "k", run(k=wide)),
        "head counts": (wrong, "k", run(k=heads)),
        "rank": (wrong, "q", run(q=good["q"][0])),
        "missing v": (wrong, "v", run(v=None)),
        "missing a_log": (wrong, "a_log", run(a_log=None)),
        "shape of dt_bias": (wrong, "dt_bias", run(dt_bias=good["dt_bias"][:1])),
        "shape of initial_state": (
            wrong,
            "initial_state",
            run(initial_state=chain.tensor(np.zeros((1, 2, 128, 64), np.float32))),
        ),
        "a list": (wrong, "beta", run(beta=[1.0, 2.0])),
        "lower_bound": (wrong, "lower_bound", run({"lower_bound": -7.0})),
        "epsilon": (wrong, "epsilon", run({"epsilon": float("nan")})),
        "packed": (wrong, "cu_seqlens", run({"cu_seqlens": [0, 19]})),
    }


KINDS = (
    "float32 q",
    "int v",
    "k of another width",
    "head counts",
    "rank",
    "missing v",
    "missing a_log",
    "shape of dt_bias",
    "shape of initial_state",
    "a list",
    "lower_bound",
    "epsilon",
    "packed",
)


def test_every_kind_of_bad_call_is_tried():
    assert set(KINDS) == set(bad_calls())


@pytest.mark.parametrize("kind", KINDS)
def test_bad_call_is_refused_and_the_next_one_works(kind):
    error, word, call = bad_calls()[kind]
    with pytest.raises(error) as caught:
        call()
    assert word in str(caught.value), str(caught.value)
    x = inputs.make_inputs(18, tokens=20, heads=2)
    output, state = chain.forward(x)
    want_output, want_state, _ = x.forward()
    assert metrics.relative_l2(output, want_output) < 6e-3
    assert metrics.relative_l2(state, want_state) < 6e-3


def test_library_path_that_does_not_exist(monkeypatch):
    x = inputs.make_inputs(19, tokens=5, heads=1)
    monkeypatch.setenv("HYPER_PARALLEL_KDA_OPAPI", "/nowhere/libop.so")
    with pytest.raises(RuntimeError, match="/nowhere/libop.so"):
        chain.forward(x)
    monkeypatch.delenv("HYPER_PARALLEL_KDA_OPAPI")
    assert np.isfinite(chain.forward(x)[0]).all()


def test_public_names():
    names = (
        "fwd_prepare",
        "pre_process_fwd",
        "fwd_h",
        "fwd_finalize",
        "bwd_prepare",
        "pre_process_bwd",
        "bwd_dhu",
        "bwd_finalize",
        "merge_fwd_bwd",
    )
    for name in ("npu_chunk_kda", *("npu_chunk_kda_" + n for n in names)):
        assert callable(getattr(kda, name)), name
