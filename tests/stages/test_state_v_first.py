# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""state_v_first: states [.., V, K] in memory, and otherwise the bits of the K-first run."""

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import (
    bwd_cases,
    scan_cases,
    stage_runs,
    test_bwd_dhu,
    test_bwd_prepare,
    test_fwd_finalize,
    test_fwd_h,
    test_merge_fwd_bwd,
    test_precise_scans,
)
from tests.support import inputs
from tests.support.bfloat16 import to_bf16
from tests.support.reference import transpose
from tests.support.stage_calls import complete_call

STATES = {"initial_state", "final_state", "h0", "dht", "dh0", "h", "h_low", "state"}
# dh and dh_low stay K first.


def assert_transposed(lib, op, arguments):
    """The V-first run holds the K-first run's bits, with the states' last two axes exchanged."""
    want = lib.call(op, **arguments)
    turned = {
        name: transpose(value) if name in STATES and value is not None else value
        for name, value in arguments.items()
    }
    got = lib.call(op, **{**turned, "state_v_first": True})
    for name, value in want.items():
        if value is None:
            assert got[name] is None
            continue
        expected = transpose(value) if name in STATES else value
        assert got[name].tobytes() == expected.tobytes(), name
        if name in STATES and value.any():  # a symmetric state would show nothing
            assert not np.array_equal(expected, value), name


def initial_states(case):
    return (None, case.state, case.io.array(case.state))


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("kind", range(3), ids=["zero", "fp32", "as io"])
@stage_runs.IO
def test_fwd_h_bits(lib, tokens, kind, io):
    case = scan_cases.draw(tokens, batch=2, tokens=tokens, heads=3, io=io)
    initial = initial_states(case)[kind]
    for final in (True, False):
        assert_transposed(lib, test_fwd_h.OP, test_fwd_h.arguments(case, initial, final))


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("kind", range(3), ids=["zero", "fp32", "as io"])
@stage_runs.IO
def test_bwd_dhu_bits(lib, tokens, kind, io):
    case = scan_cases.draw(tokens, batch=2, tokens=tokens, heads=3, io=io)
    dht = initial_states(case)[kind]
    for with_h0 in (True, False):
        assert_transposed(lib, test_bwd_dhu.OP, test_bwd_dhu.arguments(case, dht, with_h0, "BSND"))


@pytest.mark.parametrize("module", [test_fwd_h, test_bwd_dhu])
@pytest.mark.parametrize("heads", [1, 13, 30])
@stage_runs.IO
def test_slicings(lib, module, heads, io):
    case = scan_cases.draw(heads, tokens=130, heads=heads, io=io)
    assert_transposed(lib, module.OP, module.arguments(case, case.state))
    case = test_precise_scans.make(heads, draw=True, tokens=130, heads=heads, io=io)
    assert_transposed(lib, module.OP, test_precise_scans.arguments(module, case, case.state))


@pytest.mark.parametrize("module", [test_fwd_h, test_bwd_dhu])
def test_empty_scans_hand_the_state_on(lib, module):
    empty = scan_cases.empty(2, 3)
    state = np.random.default_rng(1).standard_normal((2, 3, 128, 128)).astype(np.float32)
    final = "final_state" if module is test_fwd_h else "dh0"
    for given in (state, to_bf16(state)):
        got = lib.call(module.OP, **module.arguments(empty, given), state_v_first=True)[final]
        assert got.tobytes() == given.astype(np.float32).tobytes()
    assert not lib.call(module.OP, **module.arguments(empty), state_v_first=True)[final].any()


@pytest.mark.parametrize("module", [test_fwd_h, test_bwd_dhu])
@stage_runs.IO
def test_v_first_and_nats_against_float64(lib, module, io):
    case = scan_cases.make(11, batch=2, tokens=200, heads=2, io=io)
    case.gk = (case.gk * np.log(2)).astype(np.float32)
    arguments = module.arguments(case, transpose(case.state), use_exp2=False, state_v_first=True)
    if module is test_bwd_dhu:
        arguments["h0"] = transpose(arguments["h0"])
    got = lib.call(module.OP, **arguments)
    for name in STATES & set(got):
        got[name] = transpose(got[name])
    module.check(got, case, case.state, use_exp2=False)


@pytest.mark.parametrize("tokens", stage_runs.TOKENS)
@pytest.mark.parametrize("layout", ["BSND", "BNSD"])
@stage_runs.IO
def test_readers_of_h_give_the_same_bits(lib, tokens, layout, io):
    case = bwd_cases.make(tokens, batch=2, tokens=tokens, heads=3, initial_state=True, io=io)
    assert_transposed(lib, test_bwd_prepare.OP, test_bwd_prepare.arguments(case, layout))
    forward = test_fwd_finalize.make(tokens, seed=tokens, io=io)
    shape = forward["v_new"].shape
    output = (shape[0], shape[2], shape[1], shape[3]) if layout == "BSND" else shape
    arguments = {**forward, "output_layout": layout, "outputs": {"o": output}}
    assert_transposed(lib, test_fwd_finalize.OP, arguments)


@pytest.mark.parametrize("heads", [1, 3, 5, 30])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_merge_bits(lib, heads, forward, count):
    state, summaries = test_merge_fwd_bwd.make(heads + count, heads=heads)
    arguments = dict(
        state=state,
        summaries=summaries,
        pre_or_post_num_ranks=count,
        rank=3 if forward else 0,
        forward=forward,
    )
    assert_transposed(lib, test_merge_fwd_bwd.OP, arguments)


V_FIRST = [
    stage for stage in table.STAGES if any(attr.name == "state_v_first" for attr in stage.attrs)
]


@pytest.mark.parametrize("stage", V_FIRST, ids=lambda stage: stage.name)
@pytest.mark.parametrize("layout", ["TND", "BSND"])
def test_packed_sequences(lib, stage, layout):
    options = {}
    if stage.name != "merge_fwd_bwd":
        options = dict(cu_seqlens=inputs.packed([5, 0, 65, 1, 129, 64, 0]), layout=layout)
    arguments, outputs = complete_call(stage, **options)
    assert_transposed(lib, stage.op, {**arguments, "outputs": outputs})


def test_same_bits_on_any_machine(lib):
    case = scan_cases.draw(7, batch=3, tokens=150, heads=3)
    for module in (test_fwd_h, test_bwd_dhu):
        arguments = module.arguments(case, case.state)
        stage_runs.assert_same_bits(lib, module.OP, **arguments, state_v_first=True)
    state, summaries = test_merge_fwd_bwd.make(6, heads=5)
    arguments = dict(state=state, summaries=summaries, pre_or_post_num_ranks=3, rank=3)
    stage_runs.assert_same_bits(lib, test_merge_fwd_bwd.OP, **arguments, state_v_first=True)


@pytest.mark.parametrize("module", [test_fwd_h, test_bwd_dhu])
def test_counters(lib, module):
    """The same products, and transposes of whole tiles: no scalar loops."""
    case = scan_cases.draw(9, batch=2, tokens=200, heads=3)
    _, plain = stage_runs.counted(lib, module.OP, **module.arguments(case, case.state))
    _, turned = stage_runs.counted(
        lib, module.OP, **module.arguments(case, case.state), state_v_first=True
    )
    assert turned["mmad_macs"] == plain["mmad_macs"]
    assert stage_runs.mean_repeats(turned) >= 8
    assert turned["scalar_reads"] == turned["scalar_writes"] == 0
