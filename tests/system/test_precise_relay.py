# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""precise_relay=True: no gradient loses its accuracy where a sum over a row nearly cancels.

The cases are those of test_chain's known failure: strong decay, constant dht, a loss on the final
state alone. Without the option dv is off by up to 97 % on these seeds, dbeta by 40, dg by 19 and
da_log by 86. tests/system/test_options.py draws the option together with all others.
"""

from dataclasses import replace

import mindspore as ms
import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.support import chain, emulation, inputs, metrics, sizes
from tests.system import grid

LIMIT = 0.015  # of every gradient; measured: 0.7 % on the worst seeds, dbeta and da_log
SEARCHES = list(inputs.SEARCHES)


def errors(seed, tokens=65, on_sizes=False, precise_relay=True):
    """Relative L2 of every output and gradient that there is; da_log and dbeta `on_sizes`: on the
    scale of the terms that they sum."""
    x = inputs.final_state_only(seed, tokens)
    got, want = chain.results(x, precise_relay=precise_relay), x.results()
    own = sizes.of(x, want) if on_sizes else {}
    return {
        name: metrics.relative_l2(got[name], value, size=own.get(name, 0.0))
        for name, value in want.items()
        if value is not None and np.any(value)
    }


@pytest.mark.parametrize("search", SEARCHES)
def test_worst_seeds(search):
    for seed in inputs.worst_seeds(search):
        found = errors(seed)
        print(seed, {name: f"{100 * value:.2f}" for name, value in found.items()})
        assert max(found.values()) <= LIMIT, (seed, found)


@pytest.mark.parametrize("search", SEARCHES)
def test_worst_seeds_of_three_chunks(search):
    """da_log of one seed is 1 in 4,000 of the terms that it sums."""
    for seed in inputs.worst_seeds(search, 129):
        found = errors(seed, 129, on_sizes=True)
        assert max(found.values()) <= LIMIT, (seed, found)


def test_random_seeds():
    for seed in range(50):
        found = errors(seed)
        assert max(found.values()) <= LIMIT, (seed, found)


def test_fresh_seeds():
    """A last row alone makes dbeta and da_log: single numbers, which may nearly cancel."""
    first = inputs.fresh_seed()
    for seed in range(first, first + 10):
        found = errors(seed, on_sizes=True)
        assert max(found.values()) <= LIMIT, (seed, found)


@pytest.mark.parametrize("search, name", [("|sum_k k_last|", "dv"), ("|sum_v v_(last-1)|", "dg")])
def test_the_seeds_need_it(search, name):
    worst = max(errors(s, precise_relay=False)[name] for s in inputs.worst_seeds(search))
    assert worst > 0.1


def errors_of_one_key(beta, nats, run):
    """Worst relative L2 of output and final state where one key comes again and again: five chunks,
    in which Akk has rows that nearly cancel, and a state that carries the error on."""
    worst = np.zeros(2)
    for seed in range(4):
        x = inputs.make_inputs(seed, tokens=320, gate="activated", decay="zero", beta="two")
        x = replace(
            x,
            k=np.broadcast_to(x.k[:, :, :1], x.k.shape),
            g=np.full_like(x.g, -np.float32(nats)),
            beta=np.full_like(x.beta, beta),
        )
        want = x.forward()[:2]
        found = [metrics.relative_l2(a, b) for a, b in zip(run(x), want, strict=True)]
        worst = np.maximum(worst, found)
    return worst


def kernels(relay):
    def run(x):
        output, state = chain.call(x, chain.tensors(x, gate_dtype=ms.float32), precise_relay=relay)
        return np.swapaxes(chain.array(output), 1, 2), chain.array(state)

    return run


def emulated(numerics):
    def run(x):
        got = emulation.results(x, numerics)
        return got["output"], got["final_state"]

    return run


@pytest.mark.parametrize("beta, nats", [(1.0, 0.0), (1.5, 0.0), (1.9, 0.0), (1.99, 0.03)])
def test_one_key_again_and_again(beta, nats):
    """Measured: 3.5 % of the output, 3.4 % of the state. With one bf16 number for Akk diag(beta)
    the map from chunk to chunk grows where the true one shrinks."""
    for title, run in {
        "the kernels": kernels(False),
        "the kernels, precise_relay": kernels(True),
        "float64 within each stage": emulated(emulation.HANDED_ON),
        "one bf16 number for Akk diag(beta)": emulated(emulation.Numerics(split_inverse=False)),
    }.items():
        worst = errors_of_one_key(beta, nats, run)
        print(f"beta {beta}, {nats} nats a token, {title}:", worst)
        if title.startswith("the kernels"):
            assert worst.max() <= 0.06, title
    assert beta != 1.9 or worst.max() > 0.5  # the seeds need the pair


@pytest.mark.parametrize("decay", ["lasting", "mixed", "bound"])
@pytest.mark.parametrize("keys", inputs.KEYS)
@pytest.mark.parametrize("tokens", [17, 65, 200])
def test_other_cases_are_no_worse(tokens, keys, decay):
    x, layout = grid.case(tokens, decay, keys=keys)
    for loss, want in grid.truths(x).items():
        part = grid.with_loss(x, loss)
        got = chain.results(part, layout, precise_relay=True)
        limits = grid.limits(part, want)
        metrics.check_all(got, want, limits, part.upstream_norm(), f"{part.case} {layout}")


@pytest.mark.parametrize("layout", table.LAYOUTS)
@pytest.mark.parametrize("l2norm", [True, False])
def test_recomputing_gives_the_same_bits(layout, l2norm):
    x = inputs.make_inputs(
        47,
        tokens=200,
        heads=4,
        key_heads=2,
        l2norm=l2norm,
        initial_state=True,
        cu_seqlens=(0, 5, 5, 70, 134, 200),
    )
    saved = chain.results(x, layout, precise_relay=True)
    again = chain.results(x, layout, precise_relay=True, disable_recompute=False)
    for name, value in saved.items():
        assert np.array_equal(value, again[name]), name
    output, state = chain.forward(x, layout, precise_relay=True)  # nothing is differentiated
    assert np.array_equal(output, saved["output"])
    assert np.array_equal(state, saved["final_state"])
