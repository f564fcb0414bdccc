# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""npu_chunk_kda: results and gradients against float64 and against automatic differentiation."""

import mindspore as ms
import numpy as np
import pytest

from tests.support import chain, emulation, inputs, metrics
from tests.system import grid, recurrence


def check(x, layout, want):
    got = chain.results(x, layout)
    metrics.check_all(got, want, grid.limits(x, want), x.upstream_norm(), grid.describe(x, layout))
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


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "layout, cu_seqlens", [("BSND", None), ("NTD", (0, 64, 64, 65, 140)), ("TND", (0, 140))]
)
def test_without_the_final_state(layout, cu_seqlens, recompute):
    """Nobody asks for it, and a loss on the output alone has the same gradients bit for bit."""
    x = inputs.make_inputs(
        inputs.fresh_seed(), tokens=140, heads=4, key_heads=2, decay="mixed", loss="output",
        initial_state=True, cu_seqlens=cu_seqlens,
    )  # fmt: skip
    want, got = (
        chain.results(x, layout, output_final_state=asked, disable_recompute=not recompute)
        for asked in (True, False)
    )
    assert got.pop("final_state") is None and want.pop("final_state").any()
    for name, value in want.items():
        assert value.any() and np.array_equal(got[name], value), (name, x.case)


@pytest.mark.parametrize("gate_dtype", [ms.float32, ms.bfloat16])
@pytest.mark.parametrize("beta_dtype", [ms.float32, ms.bfloat16])
def test_gate_and_beta_dtypes(gate_dtype, beta_dtype):
    x = inputs.make_inputs(5, tokens=70, decay="medium")
    got = chain.results(x, "BSND", gate_dtype=gate_dtype, beta_dtype=beta_dtype)
    want = x.results()
    metrics.check_all(got, want, grid.limits(x, want), x.upstream_norm(), x.case)


# The known failure: strong decay, T = 65, constant dht, loss on the final state alone. dk was off
# by 6.9 % (37 % in the median of the worst seeds) before beta folding and regrouping; the gate is
# 4 %, these are twice what the kernels measure.
WORST_DK = {"|sum_v v_last|": 0.008, "|sum_k k_last|": 0.005, "|sum_v v_(last-1)|": 0.007}


def final_state_errors(seed, run):
    x = inputs.final_state_only(seed)
    got, want = run(x), x.results()
    return {
        name: metrics.relative_l2(got[name], value)
        for name, value in want.items()
        if value is not None
    }


def test_known_failure_on_random_seeds():
    errors = {seed: final_state_errors(seed, chain.results)["dk"] for seed in range(50)}
    assert max(errors.values()) <= 0.011, errors


@pytest.mark.parametrize("search", list(inputs.SEARCHES))
def test_known_failure_on_the_worst_seeds(search):
    """dk is held to its bound. The other gradients can lose all accuracy on these seeds, because
    kg, k_hat, h and v_new are stored in bf16: there the kernels may be no worse than the emulation,
    which has this rounding and no other."""
    for seed in inputs.worst_seeds(search):
        errors = final_state_errors(seed, chain.results)
        bf16 = final_state_errors(seed, emulation.results)
        assert errors["dk"] <= WORST_DK[search], (seed, errors)
        for name, error in errors.items():
            assert error <= 1.5 * bf16[name] + 3e-3, (seed, name, error, bf16[name])
