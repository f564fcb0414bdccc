# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""bwd_finalize with several value heads to a query/key head: dq and dk are sums over them."""

import numpy as np
import pytest

from tests.stages import bwd_cases, stage_runs
from tests.stages.finalize_runs import OP, arguments, check, expected, fresh, head_major

RATIOS = ((1, 2), (2, 6), (1, 8), (4, 8))  # key heads, value heads


@pytest.mark.parametrize(("key_heads", "heads"), RATIOS)
@pytest.mark.parametrize("tokens", (1, 17, 64, 65, 200))
def test_ratios_and_lengths(lib, key_heads, heads, tokens):
    layout = "BSND" if tokens % 2 else "BNSD"
    batch = 8 if tokens == 1 else 2  # four numbers of dbeta can all be near zero
    case = fresh(batch=batch, tokens=tokens, heads=heads, key_heads=key_heads, initial_state=True)
    got = lib.call(OP, **arguments(case, layout, layout))
    check(head_major(got, layout), expected(case), case)


@pytest.mark.parametrize("l2norm", (True, False))
@pytest.mark.parametrize("keys", ("independent", "parallel"))
def test_norm_and_keys(lib, l2norm, keys):
    case = fresh(tokens=100, heads=6, key_heads=2, l2norm=l2norm, keys=keys)
    got = lib.call(OP, **arguments(case, "BNSD", "BSND"))
    check(head_major(got, "BSND"), expected(case), case)


def test_a_group_sums_what_its_heads_would_give_alone(lib):
    """Without the norm, dq and dk of a group are the sums over a run with the key head repeated."""
    grouped = bwd_cases.make(11, tokens=80, heads=6, key_heads=2, l2norm=False)
    alone = bwd_cases.make(11, tokens=80, heads=6, key_heads=2, l2norm=False)
    for name in ("q_hat", "k_hat"):
        alone.cache[name] = np.repeat(alone.cache[name], 3, axis=1)
    alone.x.k = np.repeat(alone.x.k, 3, axis=1)
    got, parts = (head_major(lib.call(OP, **arguments(case))) for case in (grouped, alone))
    for name in ("dv", "dbeta", "dg", "da_log", "ddt_bias"):
        assert got[name].tobytes() == parts[name].tobytes(), name
    for name in ("dq", "dk"):
        want = parts[name].astype(np.float64).reshape(1, 2, 3, 80, 128)
        # Each part was rounded to bf16, and the sum once more.
        error = np.abs(got[name] - want.sum(2))
        assert np.all(error <= 2.0**-8 * (np.abs(want).sum(2) + np.abs(got[name]))), name


def test_same_bits_on_any_core_and_thread_count(lib):
    case = bwd_cases.make(12, batch=2, tokens=130, heads=6, key_heads=2)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, "BSND", "BSND"))


@pytest.mark.parametrize("name", ("v", "gk", "beta", "h", "dv_scan", "dq_raw"))
def test_nan_of_a_value_head_stays_in_its_group(lib, name):
    case = bwd_cases.make(13, batch=2, tokens=70, heads=6, key_heads=2)
    call = arguments(case)
    clean = lib.call(OP, **call)
    spoiled = {**call, name: call[name].copy()}
    spoiled[name][(0, slice(None), 1) if name == "h" else (0, 1)] = np.nan
    with lib.cores(1):
        got = lib.call(OP, **spoiled)
    for output in ("dv", "dbeta", "dg"):
        stage_runs.assert_contained(clean[output], got[output], (0, 1))
    for output in ("dq", "dk"):
        stage_runs.assert_contained(clean[output], got[output], (0, 0))
