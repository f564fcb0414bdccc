# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""npu_chunk_kda on packed sequences, in every layout and with grouped heads."""

import itertools
from dataclasses import replace

import mindspore as ms
import numpy as np
import pytest

from hyper_parallel_kda import packing
from hyper_parallel_kda.stage_table import LAYOUTS
from tests.support import chain, inputs, metrics, reference
from tests.support.metrics import same_bits
from tests.system import grid

PER_TOKEN = ("output", "dq", "dk", "dv", "dg", "dbeta")
PER_SEQUENCE = ("final_state", "dh0")
SUMS = ("da_log", "ddt_bias")  # over all tokens of the call

LENGTHS = {
    "tails and empty ones": [5, 0, 65, 1, 129, 64, 0, 0, 16],
    "first and last empty": [0, 33, 0],
    "one-token tails": [65, 1, 129, 193, 1],
    "single tokens": [1] * 9,
    "640 and 783": [640, 783],
}


def make(seed, lengths, heads=2, **options):
    settings = {"initial_state": True, **options}
    tokens = sum(lengths)
    return inputs.make_inputs(
        seed, tokens=tokens, heads=heads, cu_seqlens=inputs.packed(lengths), **settings
    )


def check(x, got):
    want = x.results()
    metrics.check_all(got, want, grid.limits(x, want), x.upstream_norm(), x.case)


def assert_as_dense(x, got, numbers=None):
    """Each sequence (of those numbers) has the bits that it has in a dense call of its own."""
    alone = inputs.sequences(x)
    for n in range(len(alone)) if numbers is None else numbers:
        want = chain.results(alone[n])
        rows = slice(*x.cu_seqlens[n : n + 2])
        for name in PER_TOKEN:
            assert got[name][:, :, rows].tobytes() == want[name].tobytes(), (name, n)
        for name in PER_SEQUENCE:
            assert got[name][n : n + 1].tobytes() == want[name].tobytes(), (name, n)


@pytest.mark.parametrize("case", LENGTHS)
def test_lengths(case):
    number = list(LENGTHS).index(case)
    decays = list(inputs.DECAYS)
    x = make(3000 + number, LENGTHS[case], heads=3, decay=decays[number % len(decays)])
    got = chain.results(x, LAYOUTS[number % 4])
    check(x, got)
    assert_as_dense(x, got)


def test_empty_sequences_hand_states_through():
    x = make(3010, [0, 20, 0])
    got = chain.results(x, "TND")
    for n in (0, 2):
        assert np.array_equal(got["final_state"][n], x.initial_state[n])
        assert np.array_equal(got["dh0"][n], x.dht[n])
    without_state = chain.results(replace(x, initial_state=None), "TND")
    assert not without_state["final_state"][[0, 2]].any()


def test_nothing_but_empty_sequences():
    for layout in LAYOUTS:
        x = make(3011, [0, 0, 0])
        got = chain.results(x, layout)
        assert got["output"].shape == got["dq"].shape == (1, 2, 0, 128)
        assert np.array_equal(got["final_state"], x.initial_state)
        assert np.array_equal(got["dh0"], x.dht)
        assert not got["da_log"].any() and not got["ddt_bias"].any()


@pytest.mark.parametrize("decay", ["lasting", "mixed"])
def test_every_tail(decay):
    """With the grid's four heads, as its limits: da_log of a single one may nearly cancel."""
    x = make(3012, range(1, 64), heads=4, decay=decay)
    got = chain.results(x)
    check(x, got)
    assert_as_dense(x, got, range(0, 63, 7))


def test_more_than_a_thousand_chunks():
    lengths = [65, 1, 17, 1] * 206
    x = make(3013, lengths, heads=1, decay="weak")
    assert reference.chunk_count(None, cu_seqlens=x.cu_seqlens) == 1030
    got = chain.results(x, "NTD")
    assert all(np.isfinite(value).all() for value in got.values())
    last = len(lengths) - 1
    assert_as_dense(x, got, [0, 1, 2, 341, last - 1, last])


@pytest.mark.parametrize("length", [16, 32, 64])
def test_127_sequences(length):
    x = make(3014, [length] * 127, heads=1)
    got = chain.results(x, "TND")
    if length == 16:
        check(x, got)
    assert_as_dense(x, got, [0, 63, 126])


def test_layouts_agree():
    for x in (make(3015, [70, 0, 129]), inputs.make_inputs(3016, tokens=130, initial_state=True)):
        want = chain.results(x, "BSND")
        for layout in LAYOUTS[:1] + LAYOUTS[2:]:
            same_bits(chain.results(x, layout), want, layout)


def test_shapes_of_rank_3():
    x = make(3017, [20, 13], heads=4, key_heads=2)
    for layout in ("NTD", "TND"):
        output, state = chain.call(x, chain.tensors(x, layout), layout)
        assert output.shape == (33, 4, 128) and output.dtype == ms.bfloat16
        assert state.shape == (2, 4, 128, 128)


@pytest.mark.parametrize("key_heads, heads", [(2, 2), (1, 2), (2, 6), (1, 8)])
@pytest.mark.parametrize("packed", [False, True])
def test_grouped_heads(key_heads, heads, packed):
    seed = 3020 + heads
    lengths = [5, 64, 0, 65, 31]
    settings = dict(heads=heads, key_heads=key_heads, initial_state=True, decay="medium")
    if packed:
        x = make(seed, lengths, **settings)
    else:
        x = inputs.make_inputs(seed, batch=2, tokens=130, **settings)
    layout = "TND" if packed else "BSND"
    got = chain.results(x, layout)
    check(x, got)
    same_bits(chain.results(x, "NTD" if packed else "BNSD"), got)


def test_groups_are_repeated_heads():
    """Outputs of a group have the bits that they have with q and k repeated for every value head;
    dq and dk are sums over it."""
    x = make(3030, [70, 13], heads=6, key_heads=2)
    wide = replace(x, q=np.repeat(x.q, 3, 1), k=np.repeat(x.k, 3, 1))
    got, want = chain.results(x), chain.results(wide)
    for name in ("output", "final_state", "dv", "dg", "dbeta", "da_log", "ddt_bias", "dh0"):
        assert got[name].tobytes() == want[name].tobytes(), name
    for name in ("dq", "dk"):
        total = want[name].reshape(1, 2, 3, 83, 128).sum(2)
        assert metrics.relative_l2(got[name], total) < 5e-3, name


def test_recomputing_changes_no_bit():
    x = make(3031, [70, 0, 1, 130])
    same_bits(chain.results(x, "TND", disable_recompute=False), chain.results(x, "TND"))


def test_bits_do_not_depend_on_blocks_or_threads(simulator):
    x = make(3032, [70, 0, 1, 200, 64, 3], heads=4, key_heads=2)
    want = None
    for cores, threads in itertools.product((24, 1, 3), (1, 2, 3)):
        simulator.cores(cores)
        simulator.threads(threads)
        got = chain.results(x)
        want = want or got
        same_bits(got, want, (cores, threads))


@pytest.mark.parametrize(
    "name", ["q", "k", "v", "g", "beta", "initial_state", "d_o", "dht", "whole"]
)
def test_nan_stays_in_its_sequence(simulator, name):
    """Sequences that share a chunk-sized stretch of memory, on one core."""
    simulator.cores(1)
    x = make(3033, [20, 30, 70, 10])
    spoiled = 1
    rows = slice(*x.cu_seqlens[spoiled : spoiled + 2])
    names = [name] if name != "whole" else ["q", "k", "v", "g", "beta", "d_o"]
    changed = {}
    for one in names:
        changed[one] = getattr(x, one).copy()
        if one in ("initial_state", "dht"):
            changed[one][spoiled] = np.nan
        else:
            changed[one][:, :, rows] = np.nan
    clean, got = chain.results(x), chain.results(replace(x, **changed))
    for n in (0, 2, 3):
        rows = slice(*x.cu_seqlens[n : n + 2])
        for tensor in PER_TOKEN:
            assert np.array_equal(clean[tensor][:, :, rows], got[tensor][:, :, rows]), (tensor, n)
        for tensor in PER_SEQUENCE:
            assert np.array_equal(clean[tensor][n], got[tensor][n]), (tensor, n)


def test_kinds_of_lists():
    x = make(3034, [20, 0, 70])
    want = chain.forward(x, "TND")
    pairs = np.array(reference.chunk_indices(x.cu_seqlens)).reshape(-1, 2)
    bounds = [x.cu_seqlens, tuple(x.cu_seqlens), *(np.array(x.cu_seqlens, t) for t in "bHiqQ")]
    bounds += [ms.Tensor(np.array(x.cu_seqlens, t)) for t in "iq"]
    indices = [None, pairs.tolist(), pairs.ravel().tolist(), tuple(map(tuple, pairs)), pairs]
    indices += [pairs.ravel(), ms.Tensor(pairs), ms.Tensor(pairs.astype(np.int32).ravel())]
    lists = [{"cu_seqlens": x} for x in bounds] + [{"chunk_indices": x} for x in indices]
    for given in lists:
        got = chain.forward(x, "TND", **given)
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)), given


def test_lists_are_read_once_a_call(monkeypatch):
    """Not once for each of the six stages: they may be Tensors whose values are on a device."""
    calls = []
    read = packing._integers

    def counted(checker, name, value):
        calls.append(name)
        return read(checker, name, value)

    monkeypatch.setattr(packing, "_integers", counted)
    x = make(3035, [20, 0, 70])
    pairs = reference.chunk_indices(x.cu_seqlens)
    chain.results(x, "TND", cu_seqlens=np.array(x.cu_seqlens), chunk_indices=pairs)
    assert calls == ["cu_seqlens", "chunk_indices"]


def test_lists_are_not_kept():
    """What the caller does to a list after the call does not reach the backward."""
    x = make(3036, [20, 0, 70])
    cu_seqlens = list(x.cu_seqlens)
    named = chain.tensors(x)

    def loss(v):
        output, _ = chain.call(x, {**named, "v": v}, cu_seqlens=cu_seqlens)
        cu_seqlens[1] = 1
        return output.astype(ms.float32).sum()

    got = chain.array(ms.grad(loss)(named["v"]))
    cu_seqlens[:] = x.cu_seqlens
    ones = replace(x, d_o=np.ones_like(x.v), dht=None)
    assert metrics.relative_l2(reference.to_head_major(got, "BSND"), ones.results()["dv"]) < 1e-2
