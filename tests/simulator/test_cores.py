# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The core model: identities, cross-core flags in their three modes, SyncAll, queues, counters."""

import os
import time

import numpy as np
import pytest

from tests.simulator.device import RESERVED_WORKSPACE, DeviceError

BLOCKS_AND_THREADS = [(1, 1), (3, 1), (3, 2), (20, 2), (24, 1), (24, 3)]


@pytest.mark.parametrize("blocks, threads", BLOCKS_AND_THREADS)
def test_every_core_knows_who_it_is(device, blocks, threads):
    out = np.full(8192, -1, np.int32)
    device.run("test_identity", out=out, blocks=blocks, threads=threads)
    for i in range(2 * blocks):
        assert out[i * 8] == i * 10000 + i % 2 * 1000 + blocks
    np.testing.assert_array_equal(out[4096 : 4096 + blocks], np.arange(blocks))


@pytest.mark.parametrize("blocks, threads", BLOCKS_AND_THREADS)
@pytest.mark.parametrize("rounds, ahead", [(1, 1), (7, 1), (30, 2), (40, 8)])
def test_ping_pong_between_cube_and_vector_cores(device, blocks, threads, rounds, ahead):
    out = np.zeros(4096, np.int32)
    device.run(
        "test_ping_pong", [rounds, ahead], out=out, workspace=4096, blocks=blocks, threads=threads
    )
    np.testing.assert_array_equal(out[: 16 * blocks : 8], rounds * (rounds + 1) // 2)


@pytest.mark.parametrize("blocks, threads", BLOCKS_AND_THREADS)
def test_neighbours_exchange_in_mode_1(device, blocks, threads):
    out = np.zeros(4096, np.int32)
    device.run("test_neighbours", out=out, blocks=blocks, threads=threads)
    value = np.arange(1, 2 * blocks + 1)
    for _ in range(5):
        value = value + value.reshape(-1, 2)[:, ::-1].ravel()
    np.testing.assert_array_equal(out[: 16 * blocks : 8], value)


@pytest.mark.parametrize("how", [0, 1, 2], ids=["mode-0", "SyncAll", "SyncAll-all"])
@pytest.mark.parametrize("blocks, threads", BLOCKS_AND_THREADS)
def test_sums_over_the_whole_launch(device, how, blocks, threads):
    out, workspace = np.zeros(8192, np.int32), 65536
    device.run(
        "test_all_sum",
        [how],
        out=out,
        workspace=workspace,
        blocks=blocks,
        threads=threads,
        resident=True,
    )
    old = np.arange(2 * blocks)
    for step in range(3):
        old = np.full(2 * blocks, (old + 1).sum())
        np.testing.assert_array_equal(out[step * 512 : step * 512 + 16 * blocks : 8], old)


def test_whole_launch_order_needs_resident_blocks(device):
    out = np.zeros(8192, np.int32)
    with pytest.raises(DeviceError, match=r"SyncAll at cores.cpp:\d+: .*SetScheduleMode\(1\)"):
        device.run("test_all_sum", [2], out=out, workspace=65536, blocks=2)
    with pytest.raises(DeviceError, match="25 blocks with SetScheduleMode.1. on 24 AI cores"):
        device.run("test_all_sum", [2], out=out, workspace=65536, blocks=25, resident=True)


def test_queues_and_counters(device):
    x = np.random.default_rng(1).standard_normal(2048).astype(np.float32)
    out = np.zeros(2048, np.float32)
    device.reset_counters()
    device.run("test_queues", inputs=[x], out=out)
    device.run("test_queues", inputs=[x], out=out)
    np.testing.assert_array_equal(out[:1536], x[:1536] * 2 + 1)
    counted = device.counters()["test_queues"]
    assert counted["launches"] == 2
    assert counted["vector_instructions"] == 2 * 12 and counted["vector_repeats"] == 2 * 48
    assert counted["instructions"]["Muls"] == 12 and counted["repeats"]["Adds"] == 48
    assert counted["instructions"]["DataCopyGm2Ub"] == 12
    assert counted["scalar_reads"] == 0 and counted["mmad_macs"] == 0
    region = counted["regions"]["1"]
    assert region["vector_instructions"] == 12 and region["vector_repeats"] == 48
    assert set(region["instructions"]) == {"Muls"}
    device.reset_counters()
    assert device.counters() == {}


def test_flags_by_hand(device):
    x = np.arange(256, dtype=np.float32)
    out = np.zeros(256, np.float32)
    device.run("test_flags", inputs=[x], out=out)
    np.testing.assert_array_equal(out, x * 3)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_many_launches_on_many_threads(device, threads):
    out = np.zeros(4096, np.int32)
    for i in range(30):
        device.run(
            "test_ping_pong", [5 + i, 2], out=out, workspace=4096, blocks=24, threads=threads
        )
        np.testing.assert_array_equal(out[: 48 * 8 : 8], (5 + i) * (6 + i) // 2)


def test_a_forked_process_gets_its_own_workers(device):
    out = np.zeros(4096, np.int32)
    run = dict(out=out, workspace=4096, blocks=24, threads=3)
    device.run("test_ping_pong", [5, 2], **run)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            device.run("test_ping_pong", [6, 2], **run)
            code = 0 if (out[: 48 * 8 : 8] == 21).all() else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_the_reserved_workspace_is_not_the_users(device):
    assert RESERVED_WORKSPACE == 16 * 1024 * 1024


@pytest.mark.parametrize("case", [0, 1, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_deadlock_is_reported_at_once(device, case, threads):
    begun = time.monotonic()
    with pytest.raises(DeviceError) as error:
        device.run("test_bad_sync", [case], blocks=2, threads=threads, resident=True)
    assert time.monotonic() - begun < 1
    message = str(error.value)
    assert "deadlock, every core waits" in message
    if case == 0:
        assert message.count("cross-core flag 3") == 4
        assert "[AIV 2 (block 1, sub-block 0): cross-core flag 3 at bad.cpp:" in message
    if case == 1:
        assert "[AIC 1: cross-core flag 3 at bad.cpp:" in message and "AIC 0" not in message
    if case == 5:
        assert message.count("SyncAll") == 3 and "AIV 3" not in message
