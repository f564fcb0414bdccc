# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Stage 2: forward summaries [E | M]."""

import numpy as np
import pytest

from tests.stages import scan_cases, stage_runs
from tests.support import reference
from tests.support.metrics import check_all

OP = "ChunkKdaPreProcessFwd"
LIMITS = {"E": 4e-3, "M": 2.2e-3}  # twice the measured


def arguments(case, **attributes):
    k, w, u = scan_cases.stored(case, "kg", "w", "u")
    batch, heads, _ = case.shape
    outputs = {"summary": (batch, heads, 128, 256)}
    return dict(k=k, w=w, u=u, gk=case.gk, outputs=outputs, **attributes)


def parts(summary):
    return {"E": summary[..., :128], "M": summary[..., 128:]}


def check(results, case, **options):
    want = reference.pre_process_fwd(case.kg, case.w, case.u, gk=case.gk, **options)
    return check_all(parts(results["summary"]), parts(want), stage_runs.limits(LIMITS, case.io))


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@stage_runs.IO
def test_against_float64(lib, tokens, io):
    case = scan_cases.make(tokens, batch=2, tokens=tokens, heads=3, decay="weak", io=io)
    check(lib.call(OP, **arguments(case)), case)


@pytest.mark.parametrize("heads", [1, 7, 30])
def test_slicings(lib, heads):
    case = scan_cases.draw(heads, tokens=130, heads=heads)
    check(lib.call(OP, **arguments(case)), case)


def test_gk_in_nats(lib):
    case = scan_cases.make(5, tokens=150, decay="weak")
    case.gk = (case.gk * np.log(2)).astype(np.float32)
    check(lib.call(OP, **arguments(case, use_exp2=False)), case, use_exp2=False)


@pytest.mark.parametrize("tokens", [1, 65, 200])
@stage_runs.IO
def test_u_in_fp32(lib, tokens, io):
    """As fwd_prepare hands it on with precise_relay."""
    case = scan_cases.make(tokens, batch=2, tokens=tokens, decay="weak", io=io)
    rounded = lib.call(OP, **arguments(case))["summary"]
    wide = lib.call(OP, **{**arguments(case), "u": case.u})["summary"]
    assert np.array_equal(wide, rounded)

    rng = np.random.default_rng(tokens)
    case.u = case.u * rng.uniform(1 - io.epsilon, 1 + io.epsilon, case.u.shape).astype(np.float32)
    got = lib.call(OP, **{**arguments(case), "u": case.u})
    check(got, case)
    assert not np.array_equal(got["summary"], rounded)


def test_no_tokens(lib):
    empty = scan_cases.empty(2, 3)
    summary = lib.call(OP, **arguments(empty))["summary"]
    assert not summary[..., :128].any()
    assert (summary[..., 128:] == np.eye(128)).all()


def test_summary_reproduces_the_scan(lib):
    case = scan_cases.make(20, tokens=300, heads=2, decay="lasting")
    summary = lib.call(OP, **arguments(case))["summary"].astype(np.float64)
    _, _, want = reference.fwd_h(case.kg, case.w, case.u, gk=case.gk, initial_state=case.state)
    got = summary[..., 128:] @ case.state + summary[..., :128]
    check_all({"E": got}, {"E": want}, LIMITS)


def test_same_bits_on_any_machine(lib):
    case = scan_cases.draw(7, batch=2, tokens=150, heads=3)
    stage_runs.assert_same_bits(lib, OP, **arguments(case))


@pytest.mark.parametrize("name", ["kg", "w", "u", "gk"])
def test_nan_stays_in_its_head(lib, name):
    case = scan_cases.draw(8, batch=2, tokens=70, heads=4)
    with lib.cores(1):
        want = lib.call(OP, **arguments(case))["summary"]
        getattr(case, name)[1, 1, 69] = np.nan
        got = lib.call(OP, **arguments(case))["summary"]
    assert np.isnan(got[1, 1]).any()
    stage_runs.assert_contained(want, got, (1, 1))


@pytest.mark.parametrize("tokens", [1, 64, 200])
def test_counters(lib, tokens):
    case = scan_cases.draw(9, batch=2, tokens=tokens, heads=3)
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    macs = scan_cases.scan_macs(tokens, columns=128, zero_start=True, keeps_last=True)
    macs += scan_cases.scan_macs(tokens, columns=128, zero_start=False, keeps_last=True)
    assert counters["mmad_macs"] == 6 * macs
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] == counters["scalar_writes"] == 0
