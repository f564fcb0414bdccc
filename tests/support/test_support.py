# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The helpers that judge and feed the other tests."""

import numpy as np
import pytest

from tests.support import inputs, metrics, sizes
from tests.support.bfloat16 import bf16_bits, bf16_from_bits, round_bf16, split_bf16, to_bf16
from tests.support.io_types import BFLOAT16, FLOAT16, IO_TYPES


def test_bf16_rounds_to_nearest_even():
    ulp = 2.0**-7
    x = np.array([1, 1 + ulp / 2, 1 + 1.5 * ulp, 1 + 0.51 * ulp, -1 - ulp / 2, 3e38, np.inf])
    want = np.array([1, 1, 1 + 2 * ulp, 1 + ulp, -1, 3e38, np.inf])
    got = round_bf16(x)
    assert np.array_equal(got[:5], want[:5]) and np.isposinf(got[6])
    assert abs(got[5] / 3e38 - 1) < 2**-8
    assert np.isnan(round_bf16(np.nan))
    assert np.array_equal(bf16_from_bits(bf16_bits(x)), got)
    assert to_bf16(x).itemsize == 2


def test_bf16_pairs_keep_sixteen_bits():
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    hi, lo = split_bf16(x)
    assert np.max(np.abs(hi.astype(np.float64) + lo - x) / np.abs(x)) < 2.0**-16


@pytest.mark.parametrize("io", IO_TYPES, ids=str)
def test_io_types_know_their_rounding(io):
    x = np.random.default_rng(1).standard_normal(10000)
    error = np.abs(io.round(x) - x) / np.abs(x)
    assert 0.9 * io.epsilon < error.max() <= io.epsilon
    assert io.array(x).dtype == io.dtype and np.array_equal(io.array(x).astype(float), io.round(x))
    hi, lo = io.split(x)
    assert np.array_equal(hi, io.round(x))
    assert np.max(np.abs(hi.astype(float) + lo - x)) < 2 * io.epsilon**2 * np.abs(x).max()


def test_io_types_round_to_nearest_even_and_below_normal_numbers():
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 70000, 2.0**-25, 1.01 * 2.0**-25])
    want = np.array([1, 1 + 2.0**-9, np.inf, 0, 2.0**-24], np.float32)
    assert np.array_equal(FLOAT16.round(x), want)
    assert np.array_equal(BFLOAT16.round(x), round_bf16(x))
    small = 1e-5 * np.random.default_rng(2).standard_normal(10000)
    error = np.abs(FLOAT16.round(small) - small).max()
    assert 0.9 * FLOAT16.tiny < error <= FLOAT16.tiny


def test_a_floor_forgives_small_errors_only():
    want = np.full(100, 1e-3)
    assert metrics.relative_l2(want + 1e-6, want, floor=2e-6) == 0
    assert abs(metrics.relative_l2(want + 3e-6, want, floor=1e-6) - 2e-3) < 1e-9


@pytest.mark.parametrize("io", IO_TYPES, ids=str)
def test_inputs_hold_values_of_the_io_type(io):
    x = inputs.make_inputs(3, tokens=40, gate="softplus", decay="mixed", io=io)
    for name in ("q", "k", "v", "g", "beta", "d_o"):
        value = getattr(x, name)
        assert np.array_equal(io.round(value), value), name
    assert ("io=float16" in x.case) == io.is_half


def test_relative_l2_sees_what_is_wrong():
    want = np.ones(100)
    assert metrics.relative_l2(want, want) == 0
    assert abs(metrics.relative_l2(1.01 * want, want) - 0.01) < 1e-12
    assert metrics.relative_l2(np.where(np.arange(100) == 3, np.nan, 1), want) == np.inf
    assert metrics.relative_l2(want, 0 * want) == np.inf
    with pytest.raises(AssertionError, match="shape"):
        metrics.relative_l2(want[:50], want)


def test_rounding_steps_count_apart_from_errors():
    want = np.random.default_rng(5).standard_normal(1000)
    want[0] = 1e3  # most of the norm
    rounded = round_bf16(want).astype(np.float64)
    step = rounded.copy()
    step[0] *= 1 + BFLOAT16.epsilon
    assert metrics.relative_l2(step, rounded) > 3e-3
    assert metrics.apart(step, rounded, BFLOAT16) == (0.001, 0.0)
    share, rest = metrics.apart(rounded, want, BFLOAT16)
    assert share > 0.95 and rest < 1e-4  # numbers that are merely right
    step[1] += 1.0
    share, rest = metrics.apart(step, rounded, BFLOAT16)
    assert share == 0.001 and rest > 9e-4
    step[2] = np.nan
    assert metrics.apart(step, rounded, BFLOAT16)[1] == np.inf


def test_check_all_reports_the_tensor_over_its_limit():
    want = {"dq": np.ones(4), "dk": np.ones(4), "da_log": None}
    metrics.check_all({"dq": np.ones(4), "dk": np.ones(4), "da_log": None}, want, metrics.limits())
    with pytest.raises(AssertionError, match=r"FAIL dk .*\n.*|FAIL dk"):
        metrics.check_all({"dq": np.ones(4), "dk": 1.02 * np.ones(4)}, want, metrics.limits())
    with pytest.raises(AssertionError, match="got None"):
        metrics.check_all({"dq": None, "dk": np.ones(4)}, want, metrics.limits())


@pytest.mark.parametrize("gate", inputs.GATES)
@pytest.mark.parametrize("beta", inputs.BETAS)
def test_terms_sum_to_their_gradients(gate, beta):
    """Grouped heads, two sequences: of a single number that is one term, the size is itself."""
    x = inputs.make_inputs(
        4, tokens=70, heads=4, key_heads=2, gate=gate, beta=beta, initial_state=True,
        cu_seqlens=(0, 5, 70),
    )  # fmt: skip
    want = x.results()
    if want["da_log"] is None:
        assert sizes.da_log(x, want["dg"]) == 0
    else:
        terms = sizes.da_log_terms(x, want["dg"])
        assert np.allclose(terms.sum((0, 2, 3)), want["da_log"], rtol=1e-9)
        assert sizes.da_log(x, want["dg"]) == metrics.norm(terms)
    terms = sizes.dbeta_terms(x, want["dv"])
    assert np.allclose(terms.sum(3), want["dbeta"], rtol=1e-9)
    assert sizes.of(x, want)["dbeta"] == metrics.norm(terms)


def test_a_size_counts_where_the_sum_is_smaller():
    want, got = {"da_log": np.array([1e-3])}, {"da_log": np.array([2e-3])}
    asked = []

    def terms():
        asked.append(1)
        return {"da_log": 1.0}

    (c,) = metrics.compare_all(got, want, {"da_log": 0.04}, sizes=terms)
    assert c.passed and abs(c.value - 1e-3) < 1e-12 and asked == [1]
    (c,) = metrics.compare_all(got, want, {"da_log": 5e-4}, sizes={"da_log": 1.0})
    assert not c.passed
    (c,) = metrics.compare_all({"da_log": 2 * got["da_log"]}, want, {"da_log": 4.0}, sizes=terms)
    assert c.passed and abs(c.value - 3) < 1e-12 and asked == [1]  # not asked where all is well
    (c,) = metrics.compare_all(got, want, {"da_log": 0.04}, sizes={"da_log": 1e-4})
    assert abs(c.value - 1) < 1e-12  # a sum that is larger than that is judged on itself


def test_faded_dh0_is_judged_on_the_upstream_scale():
    tiny = 1e-8 * np.ones(4)
    assert metrics.compare_dh0(2 * tiny, tiny, 10.0, 0.02).passed  # error 2e-9 of upstream
    assert not metrics.compare_dh0(20 * tiny, tiny, 10.0, 0.02).passed  # error 4e-8
    assert not metrics.compare_dh0(2 * np.ones(4), np.ones(4), 10.0, 0.02).passed
    assert not metrics.compare_dh0(np.nan * tiny, tiny, 10.0, 0.02).passed


def test_a_floor_of_dh0_counts_on_either_scale():
    ones = np.ones(4)
    for want in (ones, 1e-8 * ones):
        got = want + 0.1
        assert metrics.compare_dh0(got, want, 10.0, 0.02, floor=0.1 + 1e-12).value == 0
        assert not metrics.compare_dh0(got, want, 10.0, 0.02).passed


def test_inputs_are_representable_and_reproducible():
    a = inputs.make_inputs(7, tokens=20, initial_state=True)
    b = inputs.make_inputs(7, tokens=20, initial_state=True)
    for name in ("q", "k", "v", "g", "beta", "d_o"):
        x = getattr(a, name)
        assert x.dtype == np.float32 and np.array_equal(x, round_bf16(x)), name
        assert np.array_equal(x, getattr(b, name)), name
    assert not np.array_equal(a.q, inputs.make_inputs(8, tokens=20).q)
    assert np.array_equal(a.v, inputs.draw_v(7, a.v.shape))
    assert np.array_equal(a.k, inputs.draw_k(7, a.k.shape))


def test_decay_grid_reaches_the_bound():
    def strongest(decay):
        x = inputs.make_inputs(1, tokens=64, decay=decay)
        return np.min(x.forward()[2]["gk"]) / 1.4426950408889634 / 64

    assert strongest("bound") < -4.9
    assert strongest("lasting") > -0.2


def test_worst_seeds_minimise_their_statistic():
    for search, statistic in inputs.SEARCHES.items():
        found = inputs.worst_seeds(search, count=60, keep=4)
        values = sorted(statistic(seed, 65) for seed in range(60))
        assert np.allclose([statistic(seed, 65) for seed in found], values[:4])
