# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""npu_chunk_kda: results and gradients against float64 and against automatic differentiation."""

import mindspore as ms
import numpy as np
import pytest

from tests.support import chain, inputs, metrics
from tests.system import grid, recurrence


def check(x, layout, want):
    got = chain.results(x, layout)
    metrics.check_all(got, want, grid.limits(x), x.upstream_norm(), grid.describe(x, layout))
    return got


@pytest.mark.parametrize("decay", list(inputs.DECAYS))
@pytest.mark.parametrize("tokens", grid.TOKENS)
def test_grid_against_float64(tokens, decay):
    x, layout = grid.case(tokens, decay)
    for loss, want in grid.truths(x).items():
        check(grid.with_loss(x, loss), layout, want)


@pytest.mark.parametrize("tokens", grid.TOKENS)
def test_against_mindspore_differentiation_of_the_recurrence(tokens, device_target):
    decay = list(inputs.DECAYS)[grid.TOKENS.index(tokens) % len(inputs.DECAYS)]
    x, layout = grid.case(tokens, decay, seed=2000 + tokens)
    x = grid.with_loss(x, inputs.LOSSES[grid.TOKENS.index(tokens) % 3])
    on_cpu = device_target == "CPU"
    want = recurrence.results(x, ms.float64 if on_cpu else ms.float32)
    # The reference that the other tests use is held to the same truth.
    for name, value in x.results().items():
        if value is not None:
            assert metrics.relative_l2(value, want[name]) < (1e-6 if on_cpu else 1e-3), name
    check(x, layout, want)


@pytest.mark.parametrize("beta", ["sigmoid", "two"])
@pytest.mark.parametrize("decay", list(inputs.DECAYS))
@pytest.mark.parametrize("tokens", [17, 64, 65, 128])
def test_nearly_parallel_keys(tokens, decay, beta):
    x, layout = grid.case(tokens, decay, keys="parallel", beta=beta)
    for loss, want in grid.truths(x).items():
        check(grid.with_loss(x, loss), layout, want)


@pytest.mark.parametrize("tokens", [64, 65, 200])
def test_beta_up_to_two(tokens):
    x, layout = grid.case(tokens, "mixed", beta="two")
    for loss, want in grid.truths(x).items():
        check(grid.with_loss(x, loss), layout, want)


def test_layouts_give_the_same_bits():
    x, _ = grid.case(65, "mixed")
    token_major, head_major = (chain.results(x, layout) for layout in grid.LAYOUTS)
    for name, value in token_major.items():
        assert np.array_equal(value, head_major[name]), name


@pytest.mark.parametrize("gate_dtype", [ms.float32, ms.bfloat16])
@pytest.mark.parametrize("beta_dtype", [ms.float32, ms.bfloat16])
def test_gate_and_beta_dtypes(gate_dtype, beta_dtype):
    x = inputs.make_inputs(5, tokens=70, decay="medium")
    got = chain.results(x, "BSND", gate_dtype=gate_dtype, beta_dtype=beta_dtype)
    metrics.check_all(got, x.results(), grid.limits(x), x.upstream_norm(), x.case)


def dk_error(seed):
    x = inputs.final_state_only(seed)
    return metrics.relative_l2(chain.results(x)["dk"], x.results()["dk"])


def test_known_failure_on_random_seeds():
    """Strong decay, T = 65, constant dht, loss on the final state alone: dk was off by 6.9 %."""
    errors = {seed: dk_error(seed) for seed in range(50)}
    assert max(errors.values()) <= 0.04, errors


@pytest.mark.parametrize("search", list(inputs.SEARCHES))
def test_known_failure_on_the_worst_seeds(search):
    errors = {seed: dk_error(seed) for seed in inputs.worst_seeds(search)}
    assert max(errors.values()) <= 0.04, errors
