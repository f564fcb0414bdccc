# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Runs the kernels of tests/simulator/kernels on NumPy arrays, without any host side."""

import ctypes
import json
import os
import struct
from unittest import mock

import numpy as np

from tests.support import build_tree

UB_BYTES = 16384  # of the images that the vector kernels move in and out
RESERVED_WORKSPACE = 16 * 1024 * 1024
PARAMS = 256  # words of a test kernel's tiling, as in launcher.h


class DeviceError(RuntimeError):
    """A launch that failed, with the simulator's message."""


def bits(value, dtype=np.float32):
    """A scalar's bits as the integer that the test kernels take."""
    raw = np.array([value], dtype).tobytes()
    return int.from_bytes(raw, "little")


class Device:
    def __init__(self, path=None):
        path = path or os.environ.get("ASCEND_SIM_TEST_KERNELS")
        path = path or build_tree.build(build_tree.tested("sim_test_kernels"))
        self.dll = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self.subnormals(True)
        self.dll.ascendSimReadCounters.restype = ctypes.c_size_t
        self.dll.ascendSimReadCounters.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def subnormals(self, keep):
        """Kept here, so that instructions meet their formulas; the library's default is zero."""
        assert self.dll.ascendSimSetSubnormals(int(keep)) == 0

    def run(
        self,
        kernel,
        params=(),
        *,
        inputs=(),
        out=None,
        workspace=0,
        blocks=1,
        threads=1,
        resident=False,
        cores=24,
        seed=0,
        fresh=False,
        checks=None,
    ):
        """Launches a kernel; `out` is changed in place. It is read and written; with `fresh` it is
        an output, of which nothing is there at the start. With seed None the schedule is the
        environment's; `checks` stands in for ASCEND_SIM_CHECK: kernels that store whole images move
        bytes that nothing wrote."""
        words = [int(value) for value in params]
        words += [0] * (PARAMS - len(words))
        tiling = np.frombuffer(
            struct.pack(f"<{PARAMS}Q", *[word & (2**64 - 1) for word in words]), np.uint8
        ).copy()
        arrays = [*inputs, *[None] * (3 - len(inputs))]
        arrays += [out, np.zeros(workspace, np.uint8) if workspace else None, tiling]
        pointers = (ctypes.c_void_p * 6)()
        sizes = (ctypes.c_uint64 * 6)()
        for i, array in enumerate(arrays):
            if array is not None:
                assert array.flags.c_contiguous
                pointers[i] = array.ctypes.data
                sizes[i] = array.nbytes
        if seed is not None:
            assert self.dll.ascendSimSetSchedule(ctypes.c_uint64(seed)) == 0
        error = ctypes.create_string_buffer(16384)
        self.dll.simTestSetFresh(int(fresh))
        with mock.patch.dict(os.environ, {"ASCEND_SIM_CHECK": checks} if checks else {}):
            status = self.dll.simTestLaunch(
                kernel.encode(),
                pointers,
                sizes,
                ctypes.c_uint32(blocks),
                ctypes.c_uint32(threads),
                int(resident),
                ctypes.c_uint32(cores),
                error,
                ctypes.c_size_t(len(error)),
            )
        if status != 0:
            raise DeviceError(error.value.decode())
        return out

    def counters(self):
        size = self.dll.ascendSimReadCounters(None, 0)
        text = ctypes.create_string_buffer(size + 1)
        self.dll.ascendSimReadCounters(text, size + 1)
        return json.loads(text.value.decode())

    def reset_counters(self):
        self.dll.ascendSimResetCounters()


def image(values=b"", fill=0):
    """A UB image: the bytes of `values`, then `fill`."""
    out = np.full(UB_BYTES, fill, np.uint8)
    raw = np.frombuffer(values if isinstance(values, bytes) else values.tobytes(), np.uint8)
    out[: raw.size] = raw
    return out


def lanes(size, form, count, mask_bits, repeats, widest=None):
    """The (repeat, lane) pairs that take part, as the manual defines the three forms."""
    full = 256 // (widest or size)
    if form == 0:
        return [(i // full, i % full) for i in range(count)]
    if form == 1:
        return [(r, i) for r in range(repeats) for i in range(count)]
    pattern = mask_bits[0] | (mask_bits[1] << 64)
    return [(r, i) for r in range(repeats) for i in range(full) if (pattern >> i) & 1]


def address(pair, size, block, repeat):
    """Element index of a lane: 32 B blocks `block` apart in a repeat, repeats `repeat` apart."""
    r, lane = pair
    per_block = 32 // size
    return (r * repeat + lane // per_block * block) * per_block + lane % per_block
