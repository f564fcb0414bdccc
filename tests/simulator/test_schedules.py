# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Seeded schedules: they find what the plain order hides, and change nothing else."""

import numpy as np
import pytest

from tests.simulator.device import DeviceError

SEEDS = range(1, 25)
THREADS = (1, 2, 3)


@pytest.fixture
def unchecked(device, monkeypatch):
    """Lets races run to their results instead of reporting them."""
    monkeypatch.setenv("ASCEND_SIM_CHECK", "off")
    return device


def race(device, how, *, blocks, seed, threads=1):
    out = np.zeros(4096, np.int32)
    device.run(
        "test_races", [how], out=out, workspace=4096, blocks=blocks, seed=seed, threads=threads
    )
    return out


def test_the_plain_order_hides_races(unchecked):
    drawn = race(unchecked, 0, blocks=3, seed=0)
    np.testing.assert_array_equal(drawn[:12], np.repeat(np.arange(1, 7), 2))
    for how in (1, 2):
        out = race(unchecked, how, blocks=3, seed=0)
        np.testing.assert_array_equal(out[: 6 * 8 : 8], 12345678)


def test_seeds_show_a_race_between_blocks(unchecked):
    outs = [race(unchecked, 0, blocks=3, seed=seed) for seed in SEEDS]
    assert len({out.tobytes() for out in outs}) > len(SEEDS) // 2
    # Lost updates as well as other orders: some seed leaves fewer places signed than were drawn.
    assert {np.count_nonzero(out) for out in outs} - {12}


def test_seeds_show_a_missing_flag_inside_a_block(unchecked):
    sums = [race(unchecked, 1, blocks=1, seed=seed)[:16:8] for seed in SEEDS]
    wrong = [pair for pair in sums if (pair != 12345678).any()]
    assert len(wrong) > len(SEEDS) // 3
    # Turns end between two accesses: an AIV has seen the table half filled.
    assert any(0 < value < 12345678 for pair in wrong for value in pair)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("blocks", [1, 5, 24])
def test_where_order_is_kept_no_seed_changes_anything(device, blocks, threads):
    for seed in SEEDS:
        out = race(device, 2, blocks=blocks, seed=seed, threads=threads)
        np.testing.assert_array_equal(out[: blocks * 16 : 8], 12345678)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("seed", [1, 2, 3, 2**64 - 1])
def test_synchronised_kernels_under_a_seed(device, seed, threads):
    run = dict(threads=threads, seed=seed)
    out = np.zeros(4096, np.int32)
    device.run("test_ping_pong", [30, 8], out=out, workspace=4096, blocks=20, **run)
    np.testing.assert_array_equal(out[: 16 * 20 : 8], 30 * 31 // 2)

    out = np.zeros(4096, np.int32)
    device.run("test_neighbours", out=out, blocks=20, **run)
    value = np.arange(1, 41)
    for _ in range(5):
        value = value + value.reshape(-1, 2)[:, ::-1].ravel()
    np.testing.assert_array_equal(out[: 16 * 20 : 8], value)

    for how in (0, 1, 2):
        out = np.zeros(8192, np.int32)
        device.run("test_all_sum", [how], out=out, workspace=65536, blocks=24, resident=True, **run)
        old = np.arange(48)
        for step in range(3):
            old = np.full(48, (old + 1).sum())
            np.testing.assert_array_equal(out[step * 512 : step * 512 + 16 * 24 : 8], old)


def test_a_seed_means_one_order(unchecked):
    """On one thread: the same order every time, whatever ran before."""
    for seed in SEEDS:
        first = race(unchecked, 0, blocks=5, seed=seed)
        race(unchecked, 2, blocks=24, seed=seed + 100)
        np.testing.assert_array_equal(race(unchecked, 0, blocks=5, seed=seed), first)


def test_a_failure_names_its_seed(device):
    with pytest.raises(DeviceError, match=r"deadlock.*\(under schedule 7\)$"):
        device.run("test_bad_sync", [0], blocks=2, resident=True, seed=7)
    with pytest.raises(DeviceError) as error:
        device.run("test_bad_sync", [0], blocks=2, resident=True)
    assert "schedule" not in str(error.value)


@pytest.mark.parametrize("case, message", [(2, "flag 2 .*would exceed 15"), (4, "flag 12: the fl")])
@pytest.mark.parametrize("threads", THREADS)
def test_a_failing_check_ends_the_launch_under_a_seed(device, threads, case, message):
    for seed in SEEDS:
        with pytest.raises(DeviceError, match=message):
            device.run("test_bad_sync", [case], blocks=24, threads=threads, seed=seed)
