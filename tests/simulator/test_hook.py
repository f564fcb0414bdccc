# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""A build with its own hook sees every instruction: name, pipe, source line, byte ranges, order."""

import ctypes
from collections import Counter, namedtuple

import numpy as np
import pytest

from tests.simulator.device import Device, DeviceError, image
from tests.support import build_tree

Access = namedtuple("Access", "write space at bytes inner inner_stride outer outer_stride")
Record = namedtuple("Record", "core pipe name line accesses event")


@pytest.fixture(scope="module")
def hooked():
    device = Device(build_tree.build("sim_test_hook"))
    device.dll.simTestTakeRecord.restype = ctypes.c_size_t
    device.dll.simTestTakeRecord.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return device


def records(device, *arguments, **options):
    take(device)
    device.run(*arguments, **options)
    return take(device)


def take(device):
    size = device.dll.simTestTakeRecord(None, 0)
    text = ctypes.create_string_buffer(size + 1)
    device.dll.simTestTakeRecord(text, size + 1)
    return [parse(line) for line in text.value.decode().splitlines()]


def parse(line):
    core, pipe, name, number, *rest = line.split()
    accesses, event = [], None
    while rest:
        kind = rest.pop(0)
        if kind == "O":
            event, rest = (int(rest[0]), int(rest[1])), rest[2:]
        else:
            space, numbers, rest = rest[0], [int(x) for x in rest[1:7]], rest[7:]
            accesses.append(Access(kind == "W", space, *numbers))
    return Record(core, pipe, name, int(number), accesses, event)


def touched(access):
    """The set of bytes that an access covers."""
    starts = np.add.outer(
        np.arange(access.outer) * access.outer_stride, np.arange(access.inner) * access.inner_stride
    ).ravel()
    return set((access.at + np.add.outer(starts, np.arange(access.bytes))).ravel())


def test_every_instruction_reports_once(hooked):
    x, out = np.zeros(2048, np.float32), np.zeros(2048, np.float32)
    seen = records(hooked, "test_queues", inputs=[x], out=out)
    names = [
        "AllocTensor",
        "DataCopyGm2Ub",
        "EnQue",
        "DeQue",
        "AllocTensor",
        "Muls",
        "PipeBarrier",
        "Adds",
        "EnQue",
        "FreeTensor",
        "DeQue",
        "DataCopyUb2Gm",
        "FreeTensor",
    ]
    # Six times, and what the end of the TPipe waits for.
    end = ["AllocTensor"] * 4 + ["PipeBarrier"]
    assert [record.name for record in seen] == ["Kernel", *names * 6, *end, "Kernel"]
    seen = seen[1:]
    pipes = {record.name: record.pipe for record in seen}
    assert (pipes["DataCopyGm2Ub"], pipes["Muls"], pipes["DataCopyUb2Gm"]) == ("MTE2", "V", "MTE3")
    # The hand-over carries its event: the same id from EnQue to DeQue.
    assert seen[2].event == seen[3].event
    source = (build_tree.ROOT / "tests/simulator/kernels/cores.cpp").read_text().splitlines()
    for record in seen[: len(names) * 6]:
        if record.name in ("Muls", "Adds", "PipeBarrier"):
            assert record.name in source[record.line - 1]


def test_vector_ranges(hooked):
    x, out = np.zeros(2048, np.float32), np.zeros(2048, np.float32)
    seen = records(hooked, "test_queues", inputs=[x], out=out)
    read, write = next(r for r in seen if r.name == "Muls").accesses
    assert touched(read) == set(range(0, 1024)) and not read.write
    assert touched(write) == set(range(2048, 3072)) and write.write
    assert read.space == write.space == "UB"


def test_strided_copy_ranges(hooked):
    """Four blocks of 20 bytes, 12 bytes apart in GM and two blocks apart in UB."""
    out = image()
    seen = records(
        hooked,
        "test_copy",
        [0, 4, 20, 12, 2, 1, 0, 1, 0, 64, 8],
        inputs=[image(), image()],
        out=out,
    )
    read, write = next(r for r in seen if r.name == "DataCopyPadIn").accesses
    assert read.space == "GM" and read.bytes * read.inner * read.outer == 80
    assert touched(read) == {-1 + i * 32 + j for i in range(4) for j in range(20)}
    assert touched(write) == {64 + i * 96 + j for i in range(4) for j in range(32)}


def test_cube_ranges(hooked):
    x = np.zeros((16, 16), np.uint16)
    out = np.zeros((16, 16), np.float32)
    seen = records(hooked, "test_fixpipe_to_l1", inputs=[x, x], out=out)
    assert {record.core for record in seen} == {"AIC"}
    counted = Counter(record.name for record in seen)
    assert counted["Mmad"] == 2 and counted["LoadData"] == 3 and counted["DataCopyNd2Nz"] == 2
    mmad = next(record for record in seen if record.name == "Mmad")
    assert mmad.pipe == "M"
    left, right, new = mmad.accesses
    assert (left.space, left.bytes) == ("L0A", 512) and (right.space, right.bytes) == ("L0B", 512)
    assert (new.space, new.bytes, new.write) == ("L0C", 1024, True)


def test_cross_core_order(hooked):
    out = np.zeros(4096, np.int32)
    seen = records(hooked, "test_ping_pong", [4, 2], out=out, workspace=4096)
    sets = [r for r in seen if r.name == "CrossCoreSetFlag"]
    waits = [r for r in seen if r.name == "CrossCoreWaitFlag"]
    assert Counter((r.core, r.event) for r in sets) == {("AIC", (2, 3)): 4, ("AIV", (2, 4)): 8}
    assert Counter((r.core, r.event[1]) for r in waits) == {("AIC", 4): 4, ("AIV", 3): 8}


def test_the_checks_come_first(hooked):
    """An instruction that a check refuses does not report."""
    take(hooked)
    with pytest.raises(DeviceError):
        hooked.run("test_copy", [4, 7], inputs=[image(), image()], out=image())
    assert [r.name for r in take(hooked)] == ["Kernel", "DataCopyGm2Ub", "PipeBarrier"]
