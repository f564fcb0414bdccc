# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Stage 7: the backward state scan."""

import numpy as np
import pytest

from tests.stages import scan_cases, stage_runs
from tests.support import reference
from tests.support.aclnn import AclnnError
from tests.support.metrics import check_all

OP = "ChunkKdaBwdDhu"
LIMITS = {"dh": 4.6e-3, "dv_scan": 5e-3, "dh0": 3.5e-3}  # twice the measured


def arguments(case, dht=None, with_h0=True, layout="BNSD", **attributes):
    batch, heads, tokens = case.shape
    state = (batch, heads, 128, 128)
    q, k, w, dv = scan_cases.stored(case, "qg", "kg", "w", "dv")
    return dict(
        q=q,
        k=k,
        w=w,
        d_o=case.io.array(reference.from_head_major(case.d_o, layout)),
        dv=dv,
        gk=case.gk,
        h0=case.state if with_h0 else None,
        dht=dht,
        scale=case.scale,
        layout=layout,
        outputs={
            "dh": (batch, reference.chunk_count(tokens), heads, 128, 128),
            "dh0": state if with_h0 else None,
            "dv_scan": (batch, heads, tokens, 128),
            "dh_low": None,
        },
        **attributes,
    )


def check(results, case, dht=None, **options):
    scale = np.float64(np.float32(case.scale))
    dh, dh0, dv_scan = reference.bwd_dhu(
        case.qg, case.kg, case.w, case.d_o, case.dv, scale, gk=case.gk, h0=case.state, dht=dht,
        **options,
    )  # fmt: skip
    got = {name: results.f32(name) for name in results}
    want = {"dh": dh, "dh0": dh0, "dv_scan": dv_scan}
    return check_all(got, {name: want[name] for name in got}, stage_runs.limits(LIMITS, case.io))


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
@stage_runs.IO
def test_against_float64(lib, tokens, layout, io):
    case = scan_cases.make(tokens, batch=2, tokens=tokens, heads=3, io=io)
    for dht in (None, case.state):
        check(lib.call(OP, **arguments(case, dht, layout=layout)), case, dht)
        check(lib.call(OP, **arguments(case, dht, False, layout)), case, dht)


@pytest.mark.parametrize("decay", ["lasting", "medium", "strong", "mixed"])
@stage_runs.IO
def test_decays(lib, decay, io):
    case = scan_cases.make(3, tokens=1000, heads=2, decay=decay, io=io)
    check(lib.call(OP, **arguments(case, case.state)), case, case.state)


@pytest.mark.parametrize("heads", [1, 13, 30])
def test_slicings(lib, heads):
    case = scan_cases.draw(heads, tokens=130, heads=heads)
    check(lib.call(OP, **arguments(case, layout="BSND")), case)


def test_row_pitch_beyond_16_bits(lib):
    case = scan_cases.draw(30, tokens=3, heads=520)
    assert case.d_o.shape[1] * 128 > 65535
    check(lib.call(OP, **arguments(case, layout="BSND")), case)


@stage_runs.IO
def test_dht_and_h0_as_io(lib, io):
    case = scan_cases.make(4, tokens=100, io=io)
    dht = io.array(case.state)
    given = arguments(case, dht)
    given["h0"] = dht
    check(lib.call(OP, **given), case, dht.astype(np.float32))


def test_gk_in_nats(lib):
    case = scan_cases.make(5, tokens=150)
    case.gk = (case.gk * np.log(2)).astype(np.float32)
    check(lib.call(OP, **arguments(case, use_exp2=False)), case, use_exp2=False)


def test_no_tokens(lib):
    empty = scan_cases.empty(2, 3)
    dht = np.random.default_rng(1).standard_normal((2, 3, 128, 128)).astype(np.float32)
    assert lib.call(OP, **arguments(empty, dht))["dh0"].tobytes() == dht.tobytes()
    assert not lib.call(OP, **arguments(empty))["dh0"].any()
    lib.call(OP, **arguments(empty, with_h0=False))


def test_same_bits_on_any_machine(lib):
    case = scan_cases.draw(7, batch=3, tokens=150, heads=3)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, case.state, layout="BSND"))


@pytest.mark.parametrize("name", ["qg", "kg", "w", "gk", "d_o", "dv"])
def test_nan_stays_in_its_head(lib, name):
    scan_cases.check_nan_stays_in_its_head(
        lib, OP, arguments, name, 63, final="dh0", chunks="dh", rows="dv_scan"
    )


@pytest.mark.parametrize("tokens", [1, 64, 200])
@pytest.mark.parametrize("with_dht, with_h0", [(False, False), (True, False), (False, True)])
def test_counters(lib, tokens, with_dht, with_h0):
    case = scan_cases.draw(9, batch=2, tokens=tokens, heads=3)
    dht = case.state if with_dht else None
    _, counters = stage_runs.counted(lib, OP, **arguments(case, dht, with_h0))
    macs = scan_cases.scan_macs(
        scan_cases.rows(tokens)[::-1],
        columns=128,
        query_columns=128,
        zero_start=not with_dht,
        keeps_last=with_h0,
    )
    assert counters["mmad_macs"] == 6 * macs
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] == counters["scalar_writes"] == 0


def test_refusals(lib):
    case = scan_cases.draw(10, tokens=10)
    good = arguments(case)
    for change, message in [
        (
            {"layout": "TND"},
            "q: expected 3 dimensions (as layouts NTD and TND; BNSD and BSND have a batch axis)",
        ),
        ({"layout": "HELLO"}, "layout: expected one of BNSD, BSND, NTD, TND, got 'HELLO'"),
        ({"layout": "BSND"}, "d_o: expected shape [1, 10, 2, 128]"),
        ({"h0": None}, "dh0"),
        ({"d_o": np.float16(case.d_o)}, "no supported combination of the op definition's columns"),
        (
            {"cu_seqlens": [0, 10]},
            "chunk_indices: expected 1 pairs (the chunks of cu_seqlens), got none",
        ),
    ]:
        with pytest.raises(AclnnError) as failure:
            lib.call(OP, **{**good, **change})
        assert message in failure.value.message
    check(lib.call(OP, **good), case)
