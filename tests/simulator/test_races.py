# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The race check: a kernel for every kind of report, and its twin with the order that was missing.

A report names kind, core, both instructions with their lines, bytes, and what would mend it. Lines
are found by the comments in kernels/races.cpp.
"""

import re

import numpy as np
import pytest

from tests.simulator.device import Device, DeviceError
from tests.support import build_tree

SOURCES = [
    (build_tree.ROOT / f"tests/simulator/kernels/{name}.cpp").read_text().splitlines()
    for name in ("races", "race_programs")
]

# kernel: (kind, first instruction, second instruction, memory, missing order)
READ, OVERWRITE, TWICE = "read after write", "write after read", "write after write"
ONE_CORE = {
    "test_race_mte2_v": (
        READ, "DataCopyGm2Ub (MTE2)", "Muls (V)", "UB bytes 0 to 1024",
        "SetFlag<HardEvent::MTE2_V> after the first, WaitFlag<HardEvent::MTE2_V> before the second",
    ),
    "test_race_v_mte3": (
        READ, "Duplicate (V)", "DataCopyUb2Gm (MTE3)", "UB bytes 0 to 1024", "HardEvent::V_MTE3",
    ),
    "test_race_write_after_read": (
        OVERWRITE, "DataCopyUb2Gm (MTE3)", "Duplicate (V)", "UB bytes 0 to 1024",
        "HardEvent::MTE3_V",
    ),
    "test_race_write_after_write": (
        TWICE, "Duplicate (V)", "DataCopyGm2Ub (MTE2)", "UB bytes 0 to 1024", "HardEvent::V_MTE2",
    ),
    "test_race_vector": (
        READ, "Duplicate (V)", "Adds (V)", "UB bytes 0 to 1024", "PipeBarrier<PIPE_V>",
    ),
    "test_race_vector_overwrite": (
        OVERWRITE, "Adds (V)", "Duplicate (V)", "UB bytes 0 to 1024", "PipeBarrier<PIPE_V>",
    ),
    "test_race_partial": (
        TWICE, "Duplicate (V)", "SetValue (S)", "UB bytes 16 to 20", "HardEvent::V_S",
    ),
    "test_race_v_s": (
        READ, "Duplicate (V)", "GetValue (S)", "UB bytes 12 to 16", "HardEvent::V_S",
    ),
    "test_race_s_v": (READ, "SetValue (S)", "Adds (V)", "UB bytes 0 to 4", "HardEvent::S_V"),
    "test_race_mte2": (
        TWICE, "DataCopyGm2Ub (MTE2)", "DataCopyGm2Ub (MTE2)", "UB bytes 32 to 1024",
        "PipeBarrier<PIPE_MTE2>",
    ),
    "test_race_mte3": (
        TWICE, "DataCopyUb2Gm (MTE3)", "DataCopyUb2Gm (MTE3)",
        "GM tensor 'out' bytes 1020 to 1024", "PipeBarrier<PIPE_MTE3>",
    ),
    "test_race_mte3_mte2": (
        READ, "DataCopyUb2Gm (MTE3)", "DataCopyGm2Ub (MTE2)", "GM tensor 'out' bytes 0 to 1024",
        "HardEvent::MTE3_MTE2",
    ),
    "test_race_early_flag": (
        READ, "DataCopyGm2Ub (MTE2)", "Muls (V)", "UB bytes 0 to 1024", "HardEvent::MTE2_V",
    ),
    "test_race_other_id": (
        READ, "DataCopyGm2Ub (MTE2)", "Muls (V)", "UB bytes 1024 to 2048", "HardEvent::MTE2_V",
    ),
    "test_race_queue": (
        OVERWRITE, "DataCopyUb2Gm (MTE3)", "DataCopyGm2Ub (MTE2)", "UB bytes 8192 to 9216",
        "HardEvent::MTE3_MTE2",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def checked():
    return Device(build_tree.build("sim_test_kernels_checked"))


@pytest.fixture(autouse=True)
def only_races(monkeypatch):
    monkeypatch.setenv("ASCEND_SIM_CHECK", "races")


def line(kernel, comment):
    """The line in that kernel which ends with the comment."""
    source = next(s for s in SOURCES if any(f"TEST_KERNEL({kernel})" in text for text in s))
    start = next(i for i, text in enumerate(source) if f"TEST_KERNEL({kernel})" in text)
    return next(
        i + 1 for i, text in enumerate(source) if i > start and text.endswith(f"// {comment}")
    )


def run(device, kernel, *how, blocks=1, threads=1, resident=False):
    x, out = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    device.run(
        kernel, how, inputs=[x], out=out, workspace=1 << 16,
        blocks=blocks, threads=threads, resident=resident,
    )  # fmt: skip


def findings(device, kernel, *how, **options):
    """The reports of a launch, each a dictionary of its lines."""
    with pytest.raises(DeviceError) as caught:
        run(device, kernel, *how, **options)
    head, *rest = str(caught.value).splitlines()
    reports = []
    for text in rest:
        if text.startswith("  "):
            name, value = re.fullmatch(r"  (\w+): +(.*)", text).groups()
            reports[-1][name] = value
        else:
            reports.append({"kind": text})
    assert head == f"kernel {kernel}: {len(reports)} finding{'s' * (len(reports) != 1)}"
    return reports


@pytest.mark.parametrize("kernel", ONE_CORE)
def test_a_race_in_one_core_is_named(checked, kernel):
    kind, first, second, memory, missing = ONE_CORE[kernel]
    (report,) = findings(checked, kernel, 0)
    assert report["kind"] == f"race: {kind}"
    assert report["kernel"] == f"{kernel}, AIV 0 (block 0, sub-block 0)"
    assert report["first"] == f"{first} races.cpp:{line(kernel, 'first')}"
    assert report["second"] == f"{second} races.cpp:{line(kernel, 'second')}"
    assert report["memory"] == memory
    assert missing in report["missing"]


@pytest.mark.parametrize("kernel", [*ONE_CORE, "test_no_race_vector"])
def test_the_missing_order_silences_it(checked, kernel):
    run(checked, kernel, 1)


HAND_OVERS = {
    "test_hand_over_enque": (
        "queue: buffer used between EnQue and DeQue", "EnQue (S)", "DataCopyGm2Ub (MTE2)",
        "EnQue behind",
    ),
    "test_hand_over_free": (
        "queue: buffer used after FreeTensor", "FreeTensor (S)", "Muls (V)", "FreeTensor behind",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kernel", HAND_OVERS)
def test_a_buffer_that_its_queue_holds_is_not_to_be_used(checked, kernel):
    kind, first, second, missing = HAND_OVERS[kernel]
    (report,) = findings(checked, kernel, 0)
    assert report["kind"] == kind
    assert report["first"] == f"{first} races.cpp:{line(kernel, 'first')}"
    assert report["second"] == f"{second} races.cpp:{line(kernel, 'second')}"
    assert report["memory"].startswith("UB bytes 8192 to ")
    assert missing in report["missing"]
    run(checked, kernel, 1)


CUBE = [
    ("read after write", "loaded", "split", "L1", "HardEvent::MTE2_MTE1"),
    ("read after write", "split", "started", "L0B", "HardEvent::MTE1_M"),
    ("read after write", "started", "added", "L0C", "PipeBarrier<PIPE_M>"),
    ("read after write", "added", "stored", "L0C", "HardEvent::M_FIX"),
    ("write after write", "stored", "stored again", "GM tensor 'out'", "PipeBarrier<PIPE_FIX>"),
    ("write after read", "added", "reloaded", "L0A", "HardEvent::M_MTE1"),
]


@pytest.mark.parametrize("order", range(len(CUBE) + 1))
def test_races_of_a_cube_core(checked, order):
    """With the order up to one point, that race is gone and the next one is there."""
    kernel = "test_race_cube"
    if order == len(CUBE):
        return run(checked, kernel, order)
    seen = {(r["kind"], r["first"], r["second"]): r for r in findings(checked, kernel, order)}
    found = {}
    for key, report in seen.items():
        numbers = tuple(int(text.rsplit(":", 1)[1]) for text in key[1:])
        found[key[0], *numbers] = report
    for i, (kind, first, second, memory, missing) in enumerate(CUBE):
        report = found.get((f"race: {kind}", line(kernel, first), line(kernel, second)))
        assert (report is not None) == (i >= order), (kind, first, second)
        if report:
            assert report["memory"].startswith(f"{memory} bytes 0 to ")
            assert missing in report["missing"]


@pytest.mark.parametrize(
    "m, n, ordered",
    [
        (16, 160, True), (160, 16, True), (33, 80, True), (47, 95, True), (64, 64, True),
        (16, 144, False), (31, 159, False), (17, 128, False), (47, 79, False), (2, 256, False),
        (63, 63, False), (159, 16, False),
    ],
)  # fmt: skip
def test_products_of_few_whole_fractals_race_for_their_result(checked, m, n, ordered):
    kernel = "test_race_accumulate"
    if ordered:
        return run(checked, kernel, m, n, 0)
    found = findings(checked, kernel, m, n, 0)
    kinds = {"race: read after write", "race: write after write"}
    assert {report["kind"] for report in found} <= kinds and found
    for report in found:
        assert report["first"] == f"Mmad (M) races.cpp:{line(kernel, 'first')}"
        assert report["second"] == f"Mmad (M) races.cpp:{line(kernel, 'second')}"
        assert "PipeBarrier<PIPE_M>" in report["missing"]
    run(checked, kernel, m, n, 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_race_for_global_memory(checked, threads):
    kernel = "test_race_blocks"
    options = dict(blocks=2, threads=threads, resident=True)
    for how in 0, 3:
        (report,) = findings(checked, kernel, how, **options)
        # Whichever block a thread ran first is the first.
        read = "DataCopyGm2Ub (MTE2) races.cpp:" + str(line(kernel, "second"))
        wrote = "DataCopyUb2Gm (MTE3) races.cpp:" + str(line(kernel, "first"))
        writer, reader = "AIV 0 (block 0, sub-block 0)", "AIV 2 (block 1, sub-block 0)"
        if report["kind"] == "race: read after write":
            assert report["kernel"].endswith(reader)
            assert (report["first"], report["second"]) == (f"{wrote} on {writer}", read)
        else:
            assert report["kind"] == "race: write after read"
            assert report["kernel"].endswith(writer)
            assert (report["first"], report["second"]) == (f"{read} on {reader}", wrote)
        assert report["memory"] == "GM tensor 'workspace' bytes 32 to 1024"
        assert "CrossCoreSetFlag<0, PIPE_MT" in report["missing"]
    for how in 1, 2:
        run(checked, kernel, how, **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_neighbours_in_a_granule_do_not_race(checked, threads):
    kernel = "test_race_neighbours"
    run(checked, kernel, 0, 20, blocks=40, threads=threads)
    for size in 22, 24:
        (report,) = findings(checked, kernel, 0, size, blocks=40, threads=threads)
        assert report["kind"] == "race: write after write"
        first, last = map(int, re.findall(r"\d+", report["memory"]))
        assert first % 20 == 0 and last - first == size - 20


def test_atomic_adds_may_meet(checked):
    kernel = "test_race_atomic"
    (report,) = findings(checked, kernel, 0)
    assert report["kind"] == "race: read after write"
    assert report["first"].endswith(f":{line(kernel, 'first')} on AIV 0 (block 0, sub-block 0)")
    assert report["second"].endswith(f":{line(kernel, 'second')}")
    run(checked, kernel, 1)
    # An atomic and a plain write are a race.
    (report,) = findings(checked, kernel, 2)
    assert report["kind"] == "race: write after write"
    assert report["memory"] == "GM tensor 'out' bytes 0 to 1024"
    assert report["missing"].startswith("CrossCoreSetFlag<1, PIPE_MTE3> after the first")


def test_a_cross_core_flag_stands_for_its_own_pipe(checked):
    kernel = "test_race_aiv_aic"
    (report,) = findings(checked, kernel, 0)
    assert report["kind"] == "race: read after write"
    assert report["kernel"] == f"{kernel}, AIC 0"
    assert report["first"].endswith(f":{line(kernel, 'first')} on AIV 1 (block 0, sub-block 1)")
    assert report["second"].startswith("DataCopyGm2L1 (MTE2) ")
    assert report["memory"] == "GM tensor 'workspace' bytes 1024 to 2048"
    assert report["missing"].startswith("CrossCoreSetFlag<2, PIPE_MTE3> after the first")
    run(checked, kernel, 1)


def test_sets_behind_different_pipes_are_told_apart_by_nobody(checked):
    kernel = "test_race_mixed_sets"
    for waits in 0, 1:
        for report in findings(checked, kernel, waits):
            assert report["kind"] == "race: read after write"
            assert report["first"] == f"Fixpipe (FIX) races.cpp:{line(kernel, 'first')} on AIC 0"
            assert report["second"].endswith(f":{line(kernel, 'second')}")
            assert report["missing"].startswith("CrossCoreSetFlag<2, PIPE_FIX> after the first")
    run(checked, kernel, 2)


@pytest.mark.parametrize(
    "kernel, text, lines",
    [
        ("test_flag_twice", "SetFlag at races.cpp:{second}: event id 0 of MTE2_V is already set, "
         "set by SetFlag at races.cpp:{first}", ["first", "second"]),
        ("test_flag_not_set", "WaitFlag at races.cpp:{second}: event id 0 of MTE2_V was not set "
         "before, last set by SetFlag at races.cpp:{first}, waited for by WaitFlag at "
         "races.cpp:{taken}", ["first", "second", "taken"]),
        ("test_flag_left", "event id 1 of V_MTE3 was set but never waited for, set by SetFlag at "
         "races.cpp:{first}", ["first"]),
    ],
)  # fmt: skip
def test_flags_used_wrongly(checked, kernel, text, lines):
    with pytest.raises(DeviceError) as caught:
        run(checked, kernel, 0)
    assert text.format(**{name: line(kernel, name) for name in lines}) in str(caught.value)
    run(checked, kernel, 1)


def test_cross_core_flags_used_wrongly(checked):
    kernel = "test_flag_cross"
    run(checked, kernel, 0)
    first, second = line(kernel, "first"), line(kernel, "second")
    with pytest.raises(DeviceError) as caught:
        run(checked, kernel, 1)
    assert "cross-core flag 6 was set 1 more times than waited for, " in str(caught.value)
    assert f"last set by CrossCoreSetFlag at races.cpp:{first} on AIC 0" in str(caught.value)
    with pytest.raises(DeviceError) as caught:
        run(checked, kernel, 2)
    assert f"cross-core flag 6 at races.cpp:{second}, " in str(caught.value)
    assert f"last set by CrossCoreSetFlag at races.cpp:{first} on AIC 0" in str(caught.value)


def test_reports_do_not_depend_on_threads(checked):
    kernel = "test_race_mte2_v"
    texts = set()
    for threads in 1, 2, 2, 2:
        (report,) = findings(checked, kernel, 0, blocks=5, threads=threads)
        del report["kernel"]  # one of the five blocks
        texts.add(str(report))
    assert len(texts) == 1


def test_the_check_can_be_switched_off(checked, monkeypatch):
    monkeypatch.setenv("ASCEND_SIM_CHECK", "off")
    run(checked, "test_race_mte2_v", 0)
