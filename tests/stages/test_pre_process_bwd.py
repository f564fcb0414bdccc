# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Stage 6: backward summaries [Eb | Mb]."""

import numpy as np
import pytest

from tests.stages import scan_cases, stage_runs, test_pre_process_fwd
from tests.support import reference
from tests.support.aclnn import AclnnError
from tests.support.metrics import check_all

OP = "ChunkKdaPreProcessBwd"
LIMITS = {"E": 3.5e-3, "M": 2.2e-3}  # twice the measured
parts = test_pre_process_fwd.parts


def arguments(case, layout="BNSD", **attributes):
    q, k, w, dv = scan_cases.stored(case, "qg", "kg", "w", "dv")
    return dict(
        q=q,
        k=k,
        w=w,
        d_o=case.io.array(reference.from_head_major(case.d_o, layout)),
        dv=dv,
        gk=case.gk,
        scale=case.scale,
        layout=layout,
        outputs={"summary": (case.shape[1], 128, 256)},
        **attributes,
    )


def check(results, case, **options):
    scale = np.float64(np.float32(case.scale))
    want = reference.pre_process_bwd(
        case.qg, case.kg, case.w, case.d_o, case.dv, scale, gk=case.gk, **options
    )[0]
    return check_all(parts(results["summary"]), parts(want), stage_runs.limits(LIMITS, case.io))


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
@stage_runs.IO
def test_against_float64(lib, tokens, layout, io):
    case = scan_cases.make(tokens, tokens=tokens, heads=3, decay="weak", io=io)
    check(lib.call(OP, **arguments(case, layout)), case)


@pytest.mark.parametrize("heads", [1, 7, 30])
def test_slicings(lib, heads):
    case = scan_cases.draw(heads, tokens=130, heads=heads)
    check(lib.call(OP, **arguments(case)), case)


def test_gk_in_nats(lib):
    case = scan_cases.make(5, tokens=150, decay="weak")
    case.gk = (case.gk * np.log(2)).astype(np.float32)
    check(lib.call(OP, **arguments(case, use_exp2=False)), case, use_exp2=False)


def test_mb_is_the_transpose_of_m(lib):
    case = scan_cases.make(21, tokens=200, heads=2, decay="lasting")
    forward = lib.call(test_pre_process_fwd.OP, **test_pre_process_fwd.arguments(case))["summary"]
    backward = lib.call(OP, **arguments(case))["summary"]
    m = np.swapaxes(forward[0, ..., 128:], 1, 2)
    check_all({"M": backward[..., 128:]}, {"M": m}, {"M": 4e-3})


def test_no_tokens(lib):
    summary = lib.call(OP, **arguments(scan_cases.empty(1, 3)))["summary"]
    assert not summary[..., :128].any()
    assert (summary[..., 128:] == np.eye(128)).all()


def test_same_bits_on_any_machine(lib):
    case = scan_cases.draw(7, tokens=150, heads=5)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, "BSND"))


@pytest.mark.parametrize("name", ["qg", "kg", "w", "gk", "d_o", "dv"])
def test_nan_stays_in_its_head(lib, name):
    case = scan_cases.draw(8, tokens=70, heads=4)
    with lib.cores(1):
        want = lib.call(OP, **arguments(case))["summary"]
        getattr(case, name)[0, 2, 63] = np.nan
        got = lib.call(OP, **arguments(case))["summary"]
    assert np.isnan(got[2]).any()
    stage_runs.assert_contained(want[None], got[None], (0, 2))


@pytest.mark.parametrize("tokens", [1, 64, 200])
def test_counters(lib, tokens):
    case = scan_cases.draw(9, tokens=tokens, heads=3)
    _, counters = stage_runs.counted(lib, OP, **arguments(case))
    order = scan_cases.rows(tokens)[::-1]
    macs = scan_cases.scan_macs(
        order, columns=128, query_columns=128, zero_start=True, keeps_last=True
    )
    macs += scan_cases.scan_macs(order, columns=128, zero_start=False, keeps_last=True)
    assert counters["mmad_macs"] == 3 * macs
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] == counters["scalar_writes"] == 0


def test_refuses_a_batch(lib):
    with pytest.raises(AclnnError) as failure:
        lib.call(OP, **arguments(scan_cases.draw(10, batch=2, tokens=10)))
    assert "B: expected 1" in failure.value.message
