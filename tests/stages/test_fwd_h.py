# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Stage 3: the forward state scan."""

import numpy as np
import pytest

from tests.stages import scan_cases, stage_runs
from tests.support import reference
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import to_bf16
from tests.support.metrics import check_all

OP = "ChunkKdaFwdH"
LIMITS = {"h": 4.6e-3, "v_new": 3.7e-3, "final_state": 4e-3}  # twice the measured


def arguments(case, initial=None, final=True, **attributes):
    batch, heads, tokens = case.shape
    chunks = reference.chunk_count(tokens)
    state = (batch, heads, 128, 128)
    k, w, u = scan_cases.stored(case, "kg", "w", "u")
    return dict(
        k=k,
        w=w,
        u=u,
        gk=case.gk,
        initial_state=initial,
        outputs={
            "h": (batch, chunks, heads, 128, 128),
            "v_new": (batch, heads, tokens, 128),
            "final_state": state if final else None,
            "h_low": None,
        },
        **attributes,
    )


def check(results, case, initial=None, **options):
    h, v_new, final = reference.fwd_h(
        case.kg, case.w, case.u, gk=case.gk, initial_state=initial, **options
    )
    got = {name: results.f32(name) for name in results}
    want = {"h": h, "v_new": v_new, "final_state": final}
    return check_all(got, {name: want[name] for name in got}, stage_runs.limits(LIMITS, case.io))


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("with_state", [False, True])
@stage_runs.IO
def test_against_float64(lib, tokens, with_state, io):
    case = scan_cases.make(tokens, batch=2, tokens=tokens, heads=3, io=io)
    initial = case.state if with_state else None
    check(lib.call(OP, **arguments(case, initial)), case, initial)
    check(lib.call(OP, **arguments(case, initial, final=False)), case, initial)


@pytest.mark.parametrize("decay", ["lasting", "medium", "strong", "mixed"])
@stage_runs.IO
def test_decays(lib, decay, io):
    case = scan_cases.make(3, tokens=1000, heads=2, decay=decay, io=io)
    check(lib.call(OP, **arguments(case, case.state)), case, case.state)


@pytest.mark.parametrize("heads", [1, 13, 30])
def test_slicings(lib, heads):
    case = scan_cases.draw(heads, tokens=130, heads=heads)
    check(lib.call(OP, **arguments(case)), case)


@stage_runs.IO
def test_initial_state_as_io(lib, io):
    case = scan_cases.make(4, tokens=100, io=io)
    initial = io.array(case.state)
    check(lib.call(OP, **arguments(case, initial)), case, initial.astype(np.float32))


def test_gk_in_nats(lib):
    case = scan_cases.make(5, tokens=150)
    want = lib.call(OP, **arguments(case))
    case.gk = (case.gk * np.log(2)).astype(np.float32)
    got = lib.call(OP, **arguments(case, use_exp2=False))
    check(got, case, use_exp2=False)
    np.testing.assert_allclose(got["final_state"], want["final_state"], rtol=2e-2, atol=1e-2)


def test_no_tokens(lib):
    empty = scan_cases.empty(2, 3)
    initial = np.random.default_rng(1).standard_normal((2, 3, 128, 128)).astype(np.float32)
    assert lib.call(OP, **arguments(empty, initial))["final_state"].tobytes() == initial.tobytes()
    assert not lib.call(OP, **arguments(empty))["final_state"].any()
    lib.call(OP, **arguments(empty, final=False))


def test_same_bits_on_any_machine(lib):
    case = scan_cases.draw(7, batch=3, tokens=150, heads=3)
    stage_runs.assert_same_bits(lib, OP, **arguments(case, case.state))


@pytest.mark.parametrize("name", ["kg", "w", "u", "gk", "state"])
def test_nan_stays_in_its_head(lib, name):
    token = 5 if name == "state" else 69
    scan_cases.check_nan_stays_in_its_head(
        lib, OP, arguments, name, token, final="final_state", chunks="h", rows="v_new"
    )


@pytest.mark.parametrize("tokens", [1, 64, 200])
@pytest.mark.parametrize("with_state, final", [(False, False), (True, False), (False, True)])
def test_counters(lib, tokens, with_state, final):
    case = scan_cases.draw(9, batch=2, tokens=tokens, heads=3)
    initial = case.state if with_state else None
    _, counters = stage_runs.counted(lib, OP, **arguments(case, initial, final))
    macs = scan_cases.scan_macs(tokens, columns=128, zero_start=not with_state, keeps_last=final)
    assert counters["mmad_macs"] == 6 * macs
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] == counters["scalar_writes"] == 0


def test_refusals(lib):
    case = scan_cases.draw(10, tokens=10)
    good = arguments(case)
    mixed = "no supported combination of the op definition's columns"
    wrong_w = {"w": to_bf16(np.zeros((1, 2, 11, 128)))}
    for change, message in [
        (wrong_w, "w: expected shape [1, 2, 10, 128], got [1, 2, 11, 128]"),
        ({"gk": to_bf16(case.gk)}, "gk"),
        (
            {"cu_seqlens": [0, 10]},
            "chunk_indices: expected 1 pairs (the chunks of cu_seqlens), got none",
        ),
        ({"chunk_size": 32}, "chunk_size: expected 64, got 32"),
        ({"initial_state": case.state[:, :1].copy()}, "initial_state: expected shape"),
        ({"w": np.float16(case.w)}, mixed),
        ({"k": np.float16(case.kg)}, mixed),
        ({"initial_state": np.float16(case.state)}, mixed),
    ]:
        with pytest.raises(AclnnError) as failure:
            lib.call(OP, **{**good, **change})
        assert message in failure.value.message
    check(lib.call(OP, **good), case)
