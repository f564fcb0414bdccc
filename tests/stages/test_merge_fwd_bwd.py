# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Stage 9: summaries of other ranks composed onto a state in place."""

import numpy as np
import pytest

from tests.stages import stage_runs
from tests.support import reference
from tests.support.aclnn import AclnnError
from tests.support.metrics import relative_l2

OP = "ChunkKdaMergeFwdBwd"
LIMIT = 5e-7


def make(seed, ranks=4, heads=3):
    rng = np.random.default_rng(seed)
    state = rng.standard_normal((heads, 128, 128), np.float32)
    summaries = rng.standard_normal((ranks, heads, 128, 256), np.float32)
    summaries[..., 128:] *= 0.09  # about norm 1, as decay keeps it in real summaries
    return state, summaries


def run(lib, state, summaries, count, rank, forward=True, **options):
    return lib.call(
        OP,
        state=state,
        summaries=summaries,
        pre_or_post_num_ranks=count,
        rank=rank,
        forward=forward,
        **options,
    )["state"]


@pytest.mark.parametrize("heads", [1, 3, 30])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_against_float64(lib, heads, forward, count):
    state, summaries = make(heads + 10 * count, heads=heads)
    rank = 3 if forward else 0
    got = run(lib, state, summaries, count, rank, forward)
    want = reference.merge_fwd_bwd(state, summaries, count, rank, forward=forward)
    if count == 0:
        assert got.tobytes() == state.tobytes()
    assert relative_l2(got, want) < LIMIT


@pytest.mark.parametrize("v_first", [False, True])
@pytest.mark.parametrize("forward", [True, False])
def test_from_nothing(lib, forward, v_first):
    """A zero state stays so over no rank; over one it becomes that rank's E, to the bit."""
    _, summaries = make(4)
    nothing = np.zeros((3, 128, 128), np.float32)
    rank, neighbour = (3, 2) if forward else (0, 1)
    got = run(lib, nothing, summaries, 0, rank, forward, state_v_first=v_first)
    assert got.tobytes() == nothing.tobytes()
    got = run(lib, nothing, summaries, 1, rank, forward, state_v_first=v_first)
    e = summaries[neighbour, :, :, :128]
    assert np.array_equal(got, e.swapaxes(1, 2) if v_first else e)


def test_updates_the_given_memory(lib):
    state, summaries = make(5)
    before = summaries.tobytes()
    want = run(lib, state, summaries, 2, 3)
    lib.call(OP, in_place=True, state=state, summaries=summaries, pre_or_post_num_ranks=2, rank=3)
    assert state.tobytes() == want.tobytes()
    assert summaries.tobytes() == before


def test_same_bits_on_any_machine(lib):
    state, summaries = make(6, heads=5)
    stage_runs.assert_same_bits(
        lib, OP, state=state, summaries=summaries, pre_or_post_num_ranks=3, rank=3
    )


def test_nan_stays_in_its_head(lib):
    state, summaries = make(7, heads=5)
    want = run(lib, state, summaries, 3, 3)
    summaries[1, 2, 5, 200] = np.nan
    with lib.cores(1):
        got = run(lib, state, summaries, 3, 3)
    assert np.isnan(got[2]).any()
    stage_runs.assert_contained(want[None], got[None], (0, 2))


def test_counters(lib):
    heads, count = 4, 3
    state, summaries = make(8, heads=heads)
    _, counters = stage_runs.counted(
        lib, OP, state=state, summaries=summaries, pre_or_post_num_ranks=count, rank=3
    )
    assert counters["mmad_macs"] == heads * count * 128 * 128 * 128
    assert stage_runs.mean_repeats(counters) >= 8
    assert counters["scalar_reads"] == counters["scalar_writes"] == 0


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rank": 1, "pre_or_post_num_ranks": 2}, "pre_or_post_num_ranks: expected 0 to 1, got 2"),
        (
            {"forward": False, "rank": 2, "pre_or_post_num_ranks": 2},
            "expected 0 to 1, got 2: 1 ranks are after rank 2",
        ),
        ({"state": np.zeros((3, 64, 128), np.float32)}, "state: expected shape [3, 128, 128]"),
        ({"summaries": np.zeros((4, 3, 128, 128), np.float32)}, "summaries: expected shape"),
    ],
)
def test_refusals(lib, change, message):
    state, summaries = make(9)
    arguments = dict(state=state, summaries=summaries, pre_or_post_num_ranks=1, rank=1)
    with pytest.raises(AclnnError) as failure:
        lib.call(OP, **{**arguments, **change})
    assert message in failure.value.message
    lib.call(OP, **arguments)
