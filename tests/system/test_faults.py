# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Faults that other implementations of this interface have had, each with all of its kind."""

import os
import resource
from dataclasses import replace
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import chunk_kda_autograd as autograd
from tests.support import chain, inputs, metrics, options, sizes
from tests.support.io_types import BFLOAT16, FLOAT16
from tests.system.test_robustness import same_bits

ROOT = Path(__file__).resolve().parents[2]
HEADS = 96
LOWER_BOUNDS = (-5.0, -4.99, -3.0, -1.0, -0.1, -1e-3, -1e-6, -1e-30)
CHECKED_HEADS = 8  # compared with float64: heads do not depend on each other


def heads_of(x, count):
    per_head = ("q", "k", "v", "g", "beta", "initial_state", "d_o", "dht")
    first = {name: getattr(x, name)[:, :count] for name in per_head if getattr(x, name) is not None}
    return replace(x, **first, a_log=x.a_log[:count], dt_bias=x.dt_bias[:count])


@pytest.mark.parametrize("lower_bound", LOWER_BOUNDS)
def test_gradients_are_finite_for_every_lower_bound(lower_bound):
    """Many heads at once, and the first ones against float64."""
    decay = ("bound", "mixed")[LOWER_BOUNDS.index(lower_bound) % 2]
    check_lower_bound(lower_bound, 31, decay)


@pytest.mark.parametrize(
    "changes",
    [{}, {"io": FLOAT16}, {"cu_seqlens": (0, 17, 17, 64, 65)}],
    ids=["dense", "float16", "packed"],
)
def test_gradients_are_finite_for_a_fresh_lower_bound(changes):
    seed = inputs.fresh_seed()
    rng = np.random.default_rng(seed)
    check_lower_bound(-5.0 * (1 - rng.random()), seed, rng.choice(["bound", "mixed"]), **changes)


def check_lower_bound(lower_bound, seed, decay, io=BFLOAT16, cu_seqlens=None):
    x = inputs.make_inputs(
        seed, tokens=65, heads=HEADS, decay=decay, initial_state=True, io=io, cu_seqlens=cu_seqlens
    )
    x.options["lower_bound"] = lower_bound
    got = chain.results(x)
    for name, value in got.items():
        assert np.isfinite(value).all(), (name, x.case, lower_bound)
        assert value.any() or name in ("dg", "da_log", "ddt_bias"), name  # fade with lower_bound
    part = heads_of(x, CHECKED_HEADS)
    want = part.results()
    own_sizes = sizes.of(part, want)
    by_head = ("da_log", "ddt_bias")
    first = {n: v[:CHECKED_HEADS] if n in by_head else v[:, :CHECKED_HEADS] for n, v in got.items()}
    limits = metrics.limits(1 / options.FINER[io.name])
    if abs(lower_bound) < 1e-6:  # below 1e-30 the products of these gradients leave float32
        for name in ("dg", "da_log", "ddt_bias"):
            want.pop(name)
    floors = options.floors(chain.tensors(part))
    metrics.check_all(
        first,
        want,
        limits,
        part.upstream_norm(),
        f"{x.case} lower_bound={lower_bound}",
        floors,
        own_sizes,
    )


def fused(x):
    """Inputs as slices of one projection's output and a transposed state: none is contiguous."""
    named = chain.tensors(x)
    q, k, v, g = (named[name] for name in ("q", "k", "v", "g"))
    together = chain.tensor(np.stack([chain.array(y) for y in (q, k, v, g)], 3), ms.bfloat16)
    slices = {name: together[:, :, :, i] for i, name in enumerate(("q", "k", "v", "g"))}
    wide = chain.tensor(np.stack([chain.array(named["beta"])] * 2, -1), named["beta"].dtype)
    state = ms.Tensor(np.ascontiguousarray(np.swapaxes(x.initial_state, 2, 3)))
    slices.update(beta=wide[..., 1], initial_state=state.swapaxes(2, 3))
    for name, value in slices.items():
        assert not value.is_contiguous(), name
        assert np.array_equal(chain.array(value), chain.array(named[name])), name
    return {**named, **slices}


def gradients(x, named, names=chain.TENSORS):
    """Output, state and gradients as arrays."""
    d_o, dht = chain.tensor(np.swapaxes(x.d_o, 1, 2)), chain.tensor(x.dht)

    def loss(*values):
        output, state = chain.call(x, {**named, **dict(zip(names, values))})
        total = (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()
        return total, output, state

    run = ms.value_and_grad(loss, grad_position=tuple(range(len(names))), has_aux=True)
    (_, output, state), grads = run(*[named[name] for name in names])
    out = {"output": chain.array(output), "final_state": chain.array(state)}
    return {**out, **{f"d {n}": chain.array(g) for n, g in zip(names, grads, strict=True)}}


@pytest.mark.parametrize("tokens", [1, 65, 130])
def test_inputs_that_are_not_contiguous(tokens):
    x = inputs.make_inputs(32, batch=2, tokens=tokens, heads=3, decay="medium", initial_state=True)
    same_bits(gradients(x, chain.tensors(x)), gradients(x, fused(x)))


def test_inputs_that_are_not_contiguous_stay_as_they_are():
    x = inputs.make_inputs(33, tokens=70, decay="medium", initial_state=True)
    named = fused(x)
    before = {name: chain.array(value) for name, value in named.items()}
    gradients(x, named)
    for name, value in before.items():
        assert np.array_equal(value, chain.array(named[name])), name


@pytest.mark.parametrize("recompute", [False, True])
def test_upstream_gradients_that_are_views(monkeypatch, recompute):
    """A loss on output and state with their axes swapped hands their gradients back as views."""
    x = inputs.make_inputs(
        inputs.fresh_seed(), batch=2, tokens=70, heads=3, decay="mixed", initial_state=True
    )
    named, seen = chain.tensors(x), []
    original = autograd._backward_stages

    def record(inputs, caches, d_o, dht, *rest):
        seen.append((d_o.is_contiguous(), dht.is_contiguous()))
        return original(inputs, caches, d_o, dht, *rest)

    monkeypatch.setattr(autograd, "_backward_stages", record)

    def results(swap):
        d_o, dht = np.swapaxes(x.d_o, 1, 2), x.dht
        if swap:
            d_o, dht = x.d_o, np.swapaxes(x.dht, 2, 3)
        d_o, dht = chain.tensor(d_o), chain.tensor(dht)

        def loss(*values):
            now = dict(zip(chain.TENSORS, values, strict=True))
            output, state = chain.call(x, now, disable_recompute=not recompute)
            if swap:
                output, state = output.swapaxes(1, 2), state.swapaxes(2, 3)
            return (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()

        run = ms.grad(loss, grad_position=tuple(range(len(chain.TENSORS))))
        grads = run(*(named[name] for name in chain.TENSORS))
        return {n: chain.array(g) for n, g in zip(chain.GRADS, grads, strict=True)}

    same_bits(results(False), results(True), x.case)
    assert seen == [(True, True), (False, False)]


@pytest.mark.parametrize("l2norm", [True, False])
def test_one_tensor_for_two_arguments(l2norm):
    """q is k, v is g: the results of separate copies; the gradients of the tensor add up."""
    x = inputs.make_inputs(34, tokens=70, decay="medium", l2norm=l2norm, initial_state=True)
    x = replace(x, q=x.k.copy(), g=x.v.copy())
    apart = chain.tensors(x)
    want = gradients(x, apart)
    shared = {**apart, "q": apart["k"], "g": apart["v"]}
    before = {name: chain.array(value) for name, value in shared.items()}
    d_o, dht = chain.tensor(np.swapaxes(x.d_o, 1, 2)), chain.tensor(x.dht)

    def loss(k, v):
        output, state = chain.call(x, {**shared, "q": k, "k": k, "v": v, "g": v})
        total = (output.astype(ms.float32) * d_o).sum() + (state * dht).sum()
        return total, output, state

    run = ms.value_and_grad(loss, grad_position=(0, 1), has_aux=True)
    (_, output, state), (dk, dv) = run(shared["k"], shared["v"])
    assert np.array_equal(chain.array(output), want["output"])
    assert np.array_equal(chain.array(state), want["final_state"])
    for got, pair in ((dk, ("d q", "d k")), (dv, ("d v", "d g"))):
        total = want[pair[0]] + want[pair[1]]
        assert metrics.relative_l2(chain.array(got), total) < 2**-8, pair  # their sum is bf16
    for name, value in before.items():
        assert np.array_equal(value, chain.array(shared[name])), name


def strided(value):
    """The same values in every second element of a wider tensor."""
    if value is None:
        return None
    wide = chain.tensor(np.stack([chain.array(value)] * 2, -1), value.dtype)
    return wide[..., 1]


def arrays(found):
    output, state, grads = found
    named = {"output": output, "final_state": state, **{f"d {n}": g for n, g in grads.items()}}
    return {name: chain.array(value) for name, value in named.items()}


# Every option alone, and with packed sequences.
CASES = [(name, lengths) for name in options.OPTIONS for lengths in (None, (17, 0, 65))]


@pytest.mark.parametrize("name, lengths", CASES)
def test_bits_of_every_option(simulator, name, lengths):
    """The second call, on other threads and cores and with strided inputs, gives the same bits, and
    no input has changed."""
    setup = options.Setup(**{**options.CORE, **options.OPTIONS[name], "lengths": lengths})
    x = options.inputs_of(setup)
    named = options.named_tensors(setup, x)
    before = {n: chain.array(value) for n, value in named.items()}
    simulator.threads(1)
    want = arrays(options.raw_results(setup, x, named))
    simulator.threads(3)
    simulator.cores(5)
    again = {n: strided(value) for n, value in named.items()}
    same_bits(want, arrays(options.raw_results(setup, x, again)), name)
    for tensors in (named, again):
        for n, value in before.items():
            assert value is None or np.array_equal(value, chain.array(tensors[n])), n


@pytest.mark.parametrize("most", [1e-3, 0.05])
def test_an_activated_gate_above_zero_grows_the_state(most):
    """Documented as not refused: right while the growth over a chunk stays small."""
    setup = options.Setup(gate="activated", decay="zero", gate_dtype="float32", tokens=130, seed=38)
    x = options.inputs_of(setup)
    g = (most * inputs.stream(38, "g").random(x.g.shape)).astype(np.float32)
    x = replace(x, g=g)
    assert (x.g >= 0).all() and x.g.max() > 0.9 * most
    compared = options.compare(setup, x)
    assert all(c.passed for c in compared), metrics.report(compared)


def test_rows_behind_the_last_bound_are_refused():
    """Rows of q, k and v that belong to no sequence would silently have no output."""
    x = inputs.make_inputs(37, tokens=70, decay="medium")
    named = chain.tensors(x)
    for bounds in ([0, 64], [0, 69], [0, 70, 64], [0, 71], [1, 70]):
        with pytest.raises(ValueError, match="cu_seqlens: expected "):
            chain.call(x, named, cu_seqlens=bounds)
    chain.call(x, named, cu_seqlens=[0, 64, 70])


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
def test_bits_do_not_depend_on_the_thread_count(simulator, threads):
    x = inputs.make_inputs(35, batch=2, tokens=130, heads=5, decay="mixed", initial_state=True)
    simulator.threads(1)
    want = chain.results(x)
    simulator.threads(threads)
    for _ in range(2):
        same_bits(want, chain.results(x), threads)


# ------------------------------------------------------------------ nothing is built between calls
def files():
    """Size and time of change of every file where a build or the package could leave something."""
    places = [Path(kda.__file__).parent, Path.cwd(), ROOT / "build", Path.home() / ".cache"]
    found = {}
    for place in {path.resolve() for path in places if path.is_dir()}:
        for folder, _, names in os.walk(place):
            if ".git" in folder or "__pycache__" in folder or ".pytest_cache" in folder:
                continue
            for name in names:
                path = Path(folder, name)
                if path.is_file():
                    status = path.stat()
                    found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def libraries():
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if ".so" in line}


def children():
    """Faults of pages in children that have ended, and the children that have not."""
    live = [
        child
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt, live


def test_another_length_builds_nothing(tmp_path, monkeypatch):
    """No process is started, no library loaded and no file changed by calls with new shapes."""
    monkeypatch.chdir(tmp_path)
    first = inputs.make_inputs(36, tokens=65, heads=2, decay="medium", initial_state=True)
    chain.results(first)
    before = files(), libraries(), children()
    for tokens, heads, batch in ((66, 2, 1), (1, 3, 2), (200, 1, 1), (0, 2, 1)):
        chain.results(inputs.make_inputs(36, batch, tokens, heads, initial_state=True))
    after = files(), libraries(), children()
    for name, a, b in zip(("files", "libraries", "children"), before, after):
        assert a == b, name


def test_the_check_of_what_is_built_sees_a_build(tmp_path, monkeypatch):
    import subprocess

    monkeypatch.chdir(tmp_path)
    before = files(), children()
    subprocess.run(["touch", "library.o"], check=True)
    after = files(), children()
    assert before[0] != after[0] and before[1] != after[1]
