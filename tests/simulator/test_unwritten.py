# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Memory that nothing wrote: reported where an output, a scalar or an offset shows it, with the
instruction that read it first; each kernel has a twin that differs in what it reads or stores, and
that is right and silent."""

import re

import numpy as np
import pytest

from tests.simulator.device import Device, DeviceError
from tests.support import build_tree

X = np.arange(64, dtype=np.float32)
ONES = np.ones(48 * 16, np.float16)
OFFSETS = np.arange(64, dtype=np.int32) * 4
UNWRITTEN = "unwritten memory reaches an output"
PRODUCT = "unwritten memory in a matrix product"

# kernel: (inputs, what the right one gives, bytes of the wrong one's output if they differ,
#          options, (kind, first, second, memory) of the report)
CASES = {
    "source": (
        [X],
        X + 1,
        None,
        (UNWRITTEN, "Add", "DataCopyUb2Gm", "source 1, UB bytes 256 to 512.*'out' bytes 0 to 256"),
    ),
    "tail": (
        [X, X],
        2 * X[:5],
        32,
        (
            UNWRITTEN,
            "DataCopyPadIn",
            "DataCopyPadOut",
            "padding behind blockLen .*UB bytes 276 to 288.*'out' bytes 20 to 32",
        ),
    ),
    "reduce": (
        [X],
        np.array([X[:40].sum(), *[0] * 7], np.float32),
        None,
        (UNWRITTEN, "WholeReduceSum", "DataCopyUb2Gm", "UB bytes 416 to 512.*'out' bytes 0 to 4"),
    ),
    "mask_bits": (
        [X],
        np.where((X == 0) | (X == 2), 4, X).astype(np.float32),
        None,
        (UNWRITTEN, "Adds", "DataCopyUb2Gm", "the source, UB bytes 260 to 264.*bytes 4 to 8"),
    ),
    "scalar": (
        [X],
        np.full(64, 3, np.float32),
        None,
        ("unwritten memory read as a scalar", None, "GetValue", "UB bytes 260 to 264"),
    ),
    "select": (
        [X],
        np.where(X < 8, 5, 1).astype(np.float32),
        None,
        (
            UNWRITTEN,
            "CompareScalar",
            "DataCopyUb2Gm",
            "source 0, UB bytes 288 to 512.*'out' bytes 32 to 256",
        ),
    ),
    "and": (
        [X],
        np.zeros(64, np.float32),
        None,
        (UNWRITTEN, "And", "DataCopyUb2Gm", "source 1, UB bytes 256 to 512"),
    ),
    "offsets": (
        [X, OFFSETS],
        X,
        None,
        (
            "unwritten memory decides what an instruction does",
            None,
            "Gather",
            "the offsets, UB bytes 288 to 292",
        ),
    ),
    "copies": (
        [X],
        np.full(256, 2, np.float32),
        None,
        (UNWRITTEN, "DataCopyUb", "DataCopyUb2Gm", "UB bytes 510 to 512.*bytes 1020 to 1024"),
    ),
    "queue": (
        [X],
        np.tile(2 * X, 2),
        None,
        (
            UNWRITTEN,
            "Muls",
            "DataCopyUb2Gm",
            "UB bytes 128 to 256, from InitBuffer .*AllocTensor .*freed before at .*"
            "'out' bytes 384 to 512",
        ),
    ),
    "block": (
        [X],
        np.ones(128, np.float32),
        None,
        (UNWRITTEN, None, "DataCopyUb2Gm", "UB bytes 256 to 512.*'out' bytes 256 to 512"),
    ),
    "workspace": (
        [X],
        X,
        None,
        (
            UNWRITTEN,
            "DataCopyGm2Ub",
            "DataCopyUb2Gm",
            "GM tensor 'workspace' bytes 288 to 320.*'out' bytes 224 to 256",
        ),
    ),
    "atomic": (
        [X],
        X,
        None,
        ("atomic operation on unwritten memory", None, "DataCopyUb2Gm", "'out' bytes 0 to 256"),
    ),
    "output": (
        [X],
        X,
        None,
        ("output never written", None, None, "'out' bytes 96 to 128: 32 of 256 bytes"),
    ),
    "across_cores": (
        [X],
        np.full(1024, 16, np.float32),
        None,
        (PRODUCT, "DataCopyUb2Gm", "Mmad", "UB bytes 510 to 512"),
    ),
    "k": (
        [X],
        np.full(256, 32, np.float32),
        None,
        (PRODUCT, "LoadData", "Mmad", "L1 bytes 1024 to 1536"),
    ),
    "rows": (
        [X, ONES],
        np.full(128, 48, np.float32),
        None,
        (PRODUCT, "LoadData", "Mmad", "L1 bytes 256 to 512"),
    ),
    "column": (
        [X, ONES],
        np.full(256, 48, np.float32),
        None,
        (PRODUCT, "LoadData", "Mmad", "L1 bytes 3040 to 3072"),
    ),
    "accumulator": (
        [X],
        np.full(256, 48, np.float32),
        None,
        (UNWRITTEN, "Mmad", "Fixpipe", "the accumulator, L0C bytes 0 to 1024"),
    ),
    "bias": (
        [X],
        np.full(256, 48 + np.frombuffer(ONES[:2].tobytes(), np.float32)[0], np.float32),
        None,
        (UNWRITTEN, "Mmad", "Fixpipe", "the bias, bias table bytes 0 to 64"),
    ),
}
OPTIONS = {"block": {"blocks": 2}, "across_cores": {"blocks": 4, "threads": 4}}


@pytest.fixture(scope="module")
def checked():
    return Device(build_tree.build("sim_test_kernels_checked"))


def run(device, name, wrong):
    inputs, want, wrong_bytes, _ = CASES[name]
    out = np.full((wrong_bytes if wrong and wrong_bytes else want.nbytes) // 4, -1, np.float32)
    options = {"workspace": 65536, "fresh": True, **OPTIONS.get(name, {})}
    return device.run(f"unwritten_{name}", [wrong], inputs=inputs, out=out, **options)


def findings(text):
    """Every report of an error text as {field: line}, `kind` first."""
    reports = []
    for line in text.splitlines():
        if line.startswith("kernel "):
            continue
        field = re.match(r"  (\w+): +(.*)", line)
        if field:
            reports[-1][field[1]] = field[2]
        elif not line.startswith("  "):
            reports.append({"kind": line})
    return reports


def source_line(site):
    """The source line that a report names."""
    name, number = re.search(r"(\w+\.cpp):(\d+)", site).groups()
    text = (build_tree.ROOT / "tests/simulator/kernels" / name).read_text()
    return text.splitlines()[int(number) - 1]


@pytest.mark.parametrize("name", CASES)
def test_unwritten_memory_is_reported(checked, name):
    kind, first, second, memory = CASES[name][3]
    with pytest.raises(DeviceError) as error:
        run(checked, name, 1)
    text = str(error.value)
    assert text.startswith(f"kernel unwritten_{name}"), text
    (report,) = findings(text)
    assert report["kind"] == kind, text
    shown = "@store" if kind == UNWRITTEN or "atomic" in kind else "@read"
    for field, instruction, tag in (("first", first, "@read"), ("second", second, shown)):
        if instruction is None:
            assert field not in report, text
        else:
            assert report[field].startswith(f"{instruction} ("), text
            assert tag in source_line(report[field]), text
    assert re.search(memory, report["memory"]), text
    assert report["missing"], text
    core = "end of the launch" if name == "output" else "AI[CV] "
    assert re.search(f"unwritten_{name}, {core}", report["kernel"]), text


@pytest.mark.parametrize("name", CASES)
def test_the_right_twin_is_silent(checked, name):
    np.testing.assert_array_equal(run(checked, name, 0), CASES[name][1])


def test_a_report_does_not_depend_on_threads(checked):
    """Every block finds the same; the first block's is listed, with the core of the first read."""
    for _ in range(20):
        with pytest.raises(DeviceError) as error:
            run(checked, "across_cores", 1)
        (report,) = findings(str(error.value))
        assert report["kernel"].endswith(", AIC 0")
        assert report["first"].endswith(" on AIV 0 (block 0, sub-block 0)")


def test_results_show_it_too(checked):
    """What nothing wrote is NaN, so the output of the wrong kernel is."""
    out = np.zeros(64, np.float32)
    with pytest.raises(DeviceError):
        checked.run("unwritten_source", [1], inputs=[X], out=out, fresh=True)
    assert np.isnan(out).all()


def test_an_operand_that_is_read_and_written_need_not_be_written(checked):
    out = np.full(64, 7, np.float32)
    checked.run("unwritten_output", [1], inputs=[X], out=out)
    np.testing.assert_array_equal(out, np.where((X >= 24) & (X < 32), 7, X))


def test_the_plain_library_reports_nothing():
    device = Device(build_tree.build("sim_test_kernels"))
    out = np.zeros(64, np.float32)
    device.run("unwritten_workspace", [1], inputs=[X], out=out, workspace=65536, fresh=True)
    np.testing.assert_array_equal(out[:56], X[:56])
