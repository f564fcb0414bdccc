# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Every check fires on a kernel that breaks one rule, and says which instruction and value."""

import re

import numpy as np
import pytest

from tests.simulator.device import DeviceError
from tests.support import build_tree

COPY = {
    0: r"DataCopyGm2Ub at bad.cpp:\d+: the destination: bytes 2048 to 6144 of a buffer of 4096",
    1: r"DataCopyGm2Ub at bad.cpp:\d+: 28 bytes: DataCopy moves multiples of 32",
    2: r"DataCopyGm2Ub .*the destination at byte 4 of UB is not aligned to 32",
    3: r"DataCopyGm2Ub .*bytes 16352 to 16608 of GM tensor 'in0', which has 16384 bytes",
    4: r"DataCopyGm2Ub .*the source: ",
    5: r"DataCopyUb2Gm .*a write to GM tensor 'in0', which is an input",
    6: r"DataCopyPadIn .*blockCount 4096: at most 4095",
    7: r"DataCopyPadIn .*leftPadding 9",
    8: r"DataCopyPadIn .*blockLen 6 bytes is not a number of float",
    9: r"DataCopyPadOut .*GM tensor 'out', which has 16384 bytes",
    10: r"DataCopyUb2Gm .*the atomic mode is for int32_t, the data is float",
    11: r"SetAtomicNone is missing",
}
VECTOR = {
    0: r"Muls at bad.cpp:\d+: mask 65: it must be in 1..64",
    1: r"Muls .*the destination: bytes 0 to 4352 of a buffer of 4096",
    2: r"Muls .*the source at byte \d+ of UB is not aligned",
    3: r"Muls .*repeat 1 reads bytes that repeat 0 wrote",
    4: r"Muls .*source and destination overlap in part",
    5: r"Cast .*float to bfloat16_t with CAST_NONE is not supported",
    6: r"Compare .*60 elements: their bytes must be a multiple of 256",
    7: r"Muls .*the source is a tensor without a buffer",
    8: r"Gather .*the source: bytes 4096 to 4100 of a buffer of 4096",
    9: r"Muls .*the mask selects no element",
    10: r"BlockReduceSum .*the destination at byte 16 of UB is not aligned to 32",
    11: r"SetValue at bad.cpp:\d+: the tensor: bytes 4096 to 4100",
}
PIPE = {
    0: r"InitBuffer .*100000 bytes at VECIN: 200000 bytes of UB in all, TPipe has 188416",
    1: r"InitBuffer .*position A1 \(L1\) belongs to an AIC, this is an AIV",
    2: r"InitBuffer .*65 buffers in all, a TPipe has 64",
    3: r"AllocTensor .*all 2 buffers of the queue are in use",
    4: r"DeQue .*the queue is empty",
    5: r"EnQue .*the queue is full: its depth is 1",
    6: r"FreeTensor .*the buffer is free",
    7: r"EnQue .*does not come from this queue",
    8: r"1 tensors were put into a queue \(EnQue\) and never taken out",
    9: r"EnQue .*all 8 event ids of MTE2_V are taken",
    10: r"AllocTensor .*not initialised with InitBuffer",
    11: r"a second TPipe while the first one lives",
    12: r"GetTensor .*260 bytes from byte 0 of a TBuf of 256 bytes",
    13: r"SetFlag .*event id 0 of MTE2_V is already set",
    14: r"WaitFlag .*event id 1 of MTE2_V was not set before",
    15: r"event id 2 of V_MTE3 was set but never waited for",
    16: r"SetFlag .*event id 6 of V_MTE3 is the system's",
    17: r"SetFlag .*event id 8 of V_MTE3: it must be in 0..7",
    18: r"SetFlag .*event id 0 of MTE2_V belongs to a queue",
    19: r"GetTilingData .*must come before the TPipe",
}
CUBE = {
    0: r"InitBuffer .*768 bytes at A2: buffers in L0A must be multiples of 512",
    1: r"InitBuffer .*position VECCALC \(UB\) belongs to an AIV, this is an AIC",
    2: r"LoadData at bad.cpp:\d+: the source: bytes 0 to 8704 of a buffer of 8192",
    3: r"LoadData .*the destination: bytes 0 to 8704 of a buffer of 8192 bytes in L0A",
    4: r"LoadData .*not aligned to 512",
    5: r"Mmad .*the left operand: bytes 0 to 16384 of a buffer of 8192",
    6: r"Mmad .*m = 1 turns into a GEMV",
    7: r"Mmad .*the result at byte 256 of L0C is not aligned to 1024",
    8: r"Mmad .*fractal 0 of the left operand holds bfloat16_t, Mmad reads half",
    9: r"Fixpipe .*quantPre 0 with a result in bfloat16_t: it must be 16",
    10: r"Fixpipe .*nSize 24: a multiple of 16",
    11: r"Fixpipe .*the destination: .*GM tensor 'out'",
    12: r"Mmad .*the left operand is in L0B \(B2\), it must be in L0A",
    13: r"SetFlag .*event id 1 of M_MTE1 belongs to a queue or to the pipe",
    14: r"SetFlag .*this belongs to an AIV, but it runs on an AIC",
    15: r"DataCopyNd2Nz .*dstNzC0Stride 16385",
    16: r"DataCopyNd2Nz .*srcDValue 16 is less than dValue 32",
    17: r"DataCopyNd2Nz .*dstNzMatrixStride 16400 \(at most 16384\)",
    18: r"DataCopyNd2Nz .*srcDValue 0 \(at least 1\)",
    19: r"SetHF32Mode\(true\) is not modelled",
}
SYNC = {
    2: r"AIC 1, CrossCoreSetFlag .*counter of cross-core flag 2 on AIV 2 .*would exceed 15",
    3: r"AIV 2 \(block 1, sub-block 0\), Kernel: cross-core flag 1 was set 1 more times",
    4: r"CrossCoreSetFlag .*flag 12: the flags are 0..10 and 15",
    6: r"AIC \d, SyncAll .*this belongs to an AIV",
    7: r"CrossCoreSetFlag .*flag 5 goes from mode 1 to mode 2|deadlock",
    8: r"AIC \d, Muls .*this belongs to an AIV, but it runs on an AIC",
    9: r"AIV \d .*, Mmad .*this belongs to an AIC, but it runs on an AIV",
    10: r"unknown C\+\+ exception",
    11: r"AIC \d, CrossCoreSetFlag .*this belongs to an AIV",
    12: r"TRACE_START\(3\) without TRACE_STOP",
    13: r"WaitFlag .*event id 3 of MTE2_S was not set before",
}


def refuse(device, kernel, params, pattern, **options):
    inputs = [np.zeros(4096, np.float32)]
    with pytest.raises(DeviceError) as error:
        device.run(kernel, params, inputs=inputs, out=np.zeros(4096, np.float32), **options)
    message = str(error.value)
    assert message.startswith(f"kernel {kernel}, ")
    assert re.search(pattern, message), message
    # The next launch is not disturbed.
    x = np.arange(256, dtype=np.float32)
    out = np.zeros(256, np.float32)
    device.run("test_flags", inputs=[x], out=out)
    np.testing.assert_array_equal(out, x * 3)


@pytest.mark.parametrize("case", COPY)
def test_copies(device, case):
    refuse(device, "test_bad_vector_core", [0, case], COPY[case])


@pytest.mark.parametrize("case", VECTOR)
def test_vector_instructions(device, case):
    refuse(device, "test_bad_vector_core", [1, case], VECTOR[case])


@pytest.mark.parametrize("case", PIPE)
def test_buffers_queues_and_flags(device, case):
    refuse(device, "test_bad_vector_core", [2, case], PIPE[case])


@pytest.mark.parametrize("case", CUBE)
def test_cube_instructions(device, case):
    refuse(device, "test_bad_cube_core", [case], CUBE[case])


@pytest.mark.parametrize("case", SYNC)
@pytest.mark.parametrize("threads", [1, 2])
def test_cores_and_cross_core_flags(device, case, threads):
    refuse(device, "test_bad_sync", [case], SYNC[case], blocks=2, threads=threads, resident=True)


def test_the_kernel_type_must_be_stated(device):
    with pytest.raises(DeviceError, match="KERNEL_TASK_TYPE_DEFAULT is missing"):
        device.run("test_no_type")


# What must not compile.
SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    LocalTensor<{type}> t = buffer.Get<{type}>();
    {statement}
}}
"""
COMPILE = {
    "fine": ("float", "Add(t, t, t, 64);", None),
    "bf16 Add": ("bfloat16_t", "Add(t, t, t, 64);", "Add: unsupported element type"),
    "bf16 Muls": ("bfloat16_t", "Muls(t, t, bfloat16_t(2.0f), 64);", "Muls: unsupported"),
    "bf16 Exp": ("bfloat16_t", "Exp(t, t, 64);", "Exp: unsupported element type"),
    "bf16 ReduceSum": ("bfloat16_t", "WholeReduceSum(t, t, 64, 1, 1, 1, 8);", "half and float"),
    "int32 Div": ("int32_t", "Div(t, t, t, 64);", "Div: unsupported element type"),
    "float And": ("float", "And(t, t, t, 64);", "And: unsupported element type"),
    "scalar of another type": ("float", "Muls(t, t, 2, 64);", "no matching function"),
    "barrier of the scalar pipe": ("float", "PipeBarrier<PIPE_S>();", "the scalar pipe has none"),
    "cross-core set on the scalar pipe": ("float", "CrossCoreSetFlag<2, PIPE_S>(1);", "PIPE_S"),
    "queue at VECCALC": ("float", "TQue<TPosition::VECCALC, 1> q;", "this position has no queue"),
    "half a tiling word": (
        "float",
        "struct S { int32_t a; }; REGISTER_TILING_DEFAULT(S);",
        "multiple of 8",
    ),
}


@pytest.mark.parametrize("case", COMPILE)
def test_what_must_not_compile(case, tmp_path):
    import subprocess

    kind, statement, message = COMPILE[case]
    source = tmp_path / "kernel.cpp"
    source.write_text(SOURCE.format(type=kind, statement=statement))
    done = subprocess.run(
        [
            "g++",
            "-std=c++17",
            "-fsyntax-only",
            f"-I{build_tree.ROOT / 'simulator/include'}",
            source,
        ],
        capture_output=True,
        text=True,
    )
    if message is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0 and message in done.stderr, done.stderr
