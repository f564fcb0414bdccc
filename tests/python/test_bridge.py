# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The bridge: C arguments, outputs, errors of the op library, the choice of the library."""

import contextlib
import json
import os
import subprocess
import sys
import threading

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import loader
from hyper_parallel_kda import stage_table as table

VARIABLE = "HYPER_PARALLEL_KDA_OPAPI"


def prepare(make_inputs, **changes):
    return kda.npu_chunk_kda_fwd_prepare(**make_inputs(batch=1, heads=2).arguments(**changes))


def test_arguments_arrive_in_the_order_of_the_c_signature(fake, make_inputs):
    prepare(make_inputs, lower_bound=-2.5, use_qk_l2norm_in_kernel=True, backward_mode="forward")
    x, vector, gate = "t27[1,2,65,128]", "t27[1,2,65]", "t0[2] t0[2,128]"
    attributes = "d0.125 i64 sBNSD d1e-06 b1 b1 b0 b0 b1 d-2.5 b1 sforward b0"
    outputs = f"t0[1,2,65,128] t27[1,2,65,64] t27[1,2,65,64] {x} {x} - {x} {x} - - - - - - -"
    expected = f"ChunkKdaFwdPrepare {x} {x} {x} {x} {vector} {gate} - - {attributes} {outputs}"
    assert fake.trace == expected


def test_outputs_come_back_in_their_slots(fake, make_inputs):
    outputs = prepare(make_inputs, use_qk_l2norm_in_kernel=True)
    means = [output.astype(ms.float32).asnumpy() for output in outputs]
    first = len(table.FWD_PREPARE.inputs) + len(table.FWD_PREPARE.attrs) + 1
    for slot, mean in enumerate(means):
        assert (mean == first + slot).all()
    dtypes = [output.dtype for output in outputs]
    fp32 = {0, 10, 11, 12}
    assert dtypes == [ms.float32 if slot in fp32 else ms.bfloat16 for slot in range(13)]


def test_float32_gate_and_flat_bias(fake, make_inputs):
    x = make_inputs(batch=1, heads=2)
    prepare(make_inputs, g=x.g.astype(ms.float32), dt_bias=x.dt_bias.reshape(-1))
    assert "t0[1,2,65,128] t27[1,2,65] t0[2] t0[256]" in fake.trace


def test_views_are_passed_contiguous(fake, make_inputs):
    x = make_inputs(batch=1, heads=2)
    q = ms.ops.zeros((1, 65, 2, 128), ms.bfloat16).transpose(0, 2, 1, 3)
    assert not q.is_contiguous()
    prepare(make_inputs, q=q, k=x.k)
    assert "!strides" not in fake.trace


def test_workspace_is_there_while_the_kernel_runs(fake, make_inputs):
    for size in (1, 4096, 10_000_001, 512):
        fake.workspace(size)
        prepare(make_inputs)


def test_merge_updates_its_argument(fake):
    state = ms.Tensor(np.full((2, 128, 128), 7.0, np.float32))
    summaries = ms.ops.zeros((3, 2, 128, 256), ms.float32)
    result = kda.npu_chunk_kda_merge_fwd_bwd(state, summaries, 1, 1)
    assert result is state
    assert (state.asnumpy() == 1.0).all()
    assert fake.trace == "ChunkKdaMergeFwdBwd t0[2,128,128] t0[3,2,128,256] i1 i1 b1 b0"


@pytest.mark.parametrize("suffix, status", [("GetWorkspaceSize", 161002), ("", 361001)])
def test_failure_in_the_library(fake, make_inputs, suffix, status):
    symbol = table.FWD_PREPARE.symbol + suffix
    fake.fail(symbol)
    with pytest.raises(RuntimeError) as error:
        prepare(make_inputs)
    text = str(error.value)
    assert f"{symbol} failed with status {status}: made to fail: {symbol}" in text
    assert str(fake.path) in text
    fake.fail("")
    prepare(make_inputs)


@pytest.mark.parametrize("parity", [0, 1])
@pytest.mark.parametrize("attribute", ["symbol", "workspace_symbol"])
def test_missing_symbol_fails_only_its_stage(build_fake, parity, attribute):
    broken = table.STAGES[parity::2]
    library = build_fake(*(getattr(stage, attribute) for stage in broken))
    bridge = loader.bridge()
    for stage in table.STAGES:
        if stage not in broken:
            bridge.find_stage(str(library.path), stage.op)
            continue
        with pytest.raises(RuntimeError) as error:
            bridge.find_stage(str(library.path), stage.op)
        text = str(error.value)
        assert f"symbol {getattr(stage, attribute)} is not in the op library {library.path}" in text
        assert VARIABLE in text and "./build.sh build" in text


def test_call_with_a_missing_symbol_then_a_good_library(build_fake, fake, monkeypatch, make_inputs):
    incomplete = build_fake(table.FWD_H.symbol)
    monkeypatch.setenv(VARIABLE, str(incomplete.path))
    with pytest.raises(RuntimeError, match="symbol aclnnChunkKdaFwdH is not in the op library"):
        kda.npu_chunk_kda(**make_inputs().arguments())
    prepare(make_inputs)
    monkeypatch.setenv(VARIABLE, str(fake.path))
    kda.npu_chunk_kda(**make_inputs().arguments())


def test_failure_reaches_the_thread_that_called(fake, make_inputs):
    """MindSpore has one queue for all threads, and hands its error to whichever waits next."""
    x = make_inputs(batch=1, heads=2)
    state, summaries = x.tensor(2, 128, 128, dtype=ms.float32), ms.ops.zeros((2, 2, 128, 256))
    # All tensors beforehand: MindSpore's own ops crash or hang when threads issue them at once.
    arguments = x.arguments()
    assert summaries.asnumpy().shape == (2, 2, 128, 256)
    fake.fail(table.FWD_PREPARE.symbol)
    unexpected = []

    def fails():
        for _ in range(50):
            with contextlib.suppress(RuntimeError):
                kda.npu_chunk_kda_fwd_prepare(**arguments)
                unexpected.append("no error")

    def works():
        try:
            for _ in range(200):
                kda.npu_chunk_kda_merge_fwd_bwd(state, summaries, 1, 1)
        except RuntimeError as error:
            unexpected.append(str(error))

    threads = [threading.Thread(target=target) for target in (works, fails, works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not unexpected


def test_explicit_path_that_does_not_exist(fake, monkeypatch, make_inputs):
    monkeypatch.setenv(VARIABLE, "/nowhere/libopapi.so")
    with pytest.raises(RuntimeError, match="=/nowhere/libopapi.so: there is no such file"):
        prepare(make_inputs)
    monkeypatch.setenv(VARIABLE, str(fake.path))
    prepare(make_inputs)


def test_explicit_path_that_is_a_folder(fake, monkeypatch, tmp_path, make_inputs):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(RuntimeError, match=f"{VARIABLE}={tmp_path}: this is not a file"):
        prepare(make_inputs)


FORKED = """
import os, signal
import mindspore as ms
import hyper_parallel_kda as kda

state = ms.ops.zeros((1, 128, 128), ms.float32)
summaries = ms.ops.zeros((2, 1, 128, 256), ms.float32)
kda.npu_chunk_kda_merge_fwd_bwd(state, summaries, 1, 1).asnumpy()
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        state = ms.ops.zeros((1, 128, 128), ms.float32)  # whose dtype would never come
        kda.npu_chunk_kda_merge_fwd_bwd(state, summaries, 1, 1)
    except RuntimeError as error:
        os._exit(7 if "was forked" in str(error) and "'spawn'" in str(error) else 8)
    os._exit(9)
print("exit code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
kda.npu_chunk_kda_merge_fwd_bwd(state, summaries, 1, 1).asnumpy()
"""


def test_forked_child_gets_an_error_instead_of_waiting_for_ever(fake):
    result = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert "exit code 7" in result.stdout


def test_explicit_path_that_is_no_library(fake, monkeypatch, tmp_path, make_inputs):
    broken = tmp_path / "libbroken.so"
    broken.write_text("not a library")
    monkeypatch.setenv(VARIABLE, str(broken))
    with pytest.raises(RuntimeError, match=f"cannot load the op library {broken}: .*too short"):
        prepare(make_inputs)
    monkeypatch.setenv(VARIABLE, str(fake.path))
    prepare(make_inputs)


@pytest.mark.parametrize("kept", (0.02, 0.5))
def test_explicit_path_to_a_truncated_library(fake, monkeypatch, tmp_path, make_inputs, kept):
    """The loader maps a file's parts before it looks at them: touching one past the end would end
    the process."""
    whole = fake.path.read_bytes()
    broken = tmp_path / "libtruncated.so"
    broken.write_bytes(whole[: int(kept * len(whole))])
    monkeypatch.setenv(VARIABLE, str(broken))
    with pytest.raises(RuntimeError, match=f"cannot load the op library {broken}: .*truncated"):
        prepare(make_inputs)
    monkeypatch.setenv(VARIABLE, str(fake.path))
    prepare(make_inputs)


def test_relative_path_is_made_absolute(fake, monkeypatch, make_inputs):
    monkeypatch.chdir(fake.path.parent)
    monkeypatch.setenv(VARIABLE, fake.path.name)
    prepare(make_inputs)


def test_default_on_a_cpu_is_the_packaged_simulator(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    library = tmp_path / "libkda_opapi_sim.so"
    monkeypatch.setattr(loader, "SIMULATOR_LIBRARY", library)
    with pytest.raises(RuntimeError, match=f"simulator library {library} is missing.*build.sh"):
        loader.op_library_path()
    library.touch()
    assert loader.op_library_path() == str(library)


def test_default_on_ascend_is_the_op_package(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(loader, "is_ascend", lambda: True)
    library = tmp_path / "libcust_opapi.so"
    monkeypatch.setattr(loader, "ASCEND_LIBRARY", library)
    with pytest.raises(RuntimeError, match=f"no op package for Ascend at {library}"):
        loader.op_library_path()
    library.touch()
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "/opt/other")
    assert loader.op_library_path() == loader.op_library_path() == str(library)
    assert os.environ["ASCEND_CUSTOM_OPP_PATH"] == f"{loader.ASCEND_PACKAGE}:/opt/other"


def test_simulator_is_refused_on_ascend(monkeypatch, make_inputs):
    monkeypatch.setenv(VARIABLE, str(loader.SIMULATOR_LIBRARY))
    monkeypatch.setattr(loader, "is_ascend", lambda: True)
    with pytest.raises(RuntimeError, match="is the CPU simulator, but .* device target is Ascend"):
        prepare(make_inputs)


def test_library_of_another_mindspore(monkeypatch, tmp_path, fake, make_inputs):
    info = tmp_path / "_build_info.json"
    info.write_text(json.dumps({"mindspore": "2.9.9"}))
    built = loader.bridge()
    monkeypatch.setattr(loader, "_bridge", None)
    monkeypatch.setattr(loader, "BUILD_INFO", info)
    expected = f"built for MindSpore 2.9.9, but this process runs MindSpore {ms.__version__}"
    with pytest.raises(RuntimeError, match=expected):
        prepare(make_inputs)
    info.write_text("{")
    with pytest.raises(RuntimeError, match="missing or damaged"):
        prepare(make_inputs)
    monkeypatch.setattr(loader, "_bridge", built)
    prepare(make_inputs)


def test_import_needs_neither_mindspore_nor_a_library():
    code = (
        "import sys, hyper_parallel_kda as kda\n"
        "assert 'mindspore' not in sys.modules\n"
        "assert len(kda.__all__) == 10 and set(kda.__all__) <= set(dir(kda))\n"
    )
    environment = {VARIABLE: "/nowhere/libopapi.so", "PYTHONPATH": str(loader.PACKAGE.parent)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    code = "import hyper_parallel_kda as k; [getattr(k, name) for name in k.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
