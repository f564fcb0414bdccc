# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The CANN op project: its file lists, presets, and that CMake accepts it.

No CANN is needed: a toolkit of a few lines stands in, whose opbuild() and add_kernels_compile()
write down what they were given.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hyper_parallel_kda.stage_table import STAGES
from tests.support.build_tree import ROOT

CANN = ROOT / "cann"
UNITS = ("ascend910b", "ascend910_93")

STAND_IN = {
    "config.cmake": "set(ASCEND_AUTOGEN_PATH ${CMAKE_BINARY_DIR}/autogen)\n"
    "file(MAKE_DIRECTORY ${ASCEND_AUTOGEN_PATH})\n",
    "intf.cmake": "add_library(intf_pub INTERFACE)\n",
    "func.cmake": """
function(get_system_info name)
  set(${name} test PARENT_SCOPE)
endfunction()
function(opbuild)
  cmake_parse_arguments(ARG "" "OUT_DIR" "OPS_SRC" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/opbuild.txt "${ARG_OPS_SRC}")
  file(WRITE ${ARG_OUT_DIR}/op_proto.cc "")
  file(WRITE ${ARG_OUT_DIR}/aclnn_stage.cpp "")
endfunction()
function(add_kernels_compile)
  file(WRITE ${CMAKE_BINARY_DIR}/kernels.txt "${ASCEND_COMPUTE_UNIT} ${vendor_name}")
endfunction()
""",
}


def listed_ops():
    text = (CANN / "ops.cmake").read_text()
    return re.search(r"set\(KDA_OPS\s+([^)]*)\)", text).group(1).split()


def stems(folder):
    return sorted(path.stem for path in (ROOT / folder).glob("*.cpp"))


def test_the_list_names_the_nine_stages_and_their_files():
    assert listed_ops() == sorted(stage.kernel for stage in STAGES)
    assert listed_ops() == stems("op_host")
    assert listed_ops() == stems("op_kernel")


def test_every_op_has_a_tiling_struct_and_one_registration():
    for stage in STAGES:
        assert (ROOT / "op_kernel" / f"{stage.kernel}_tiling_data.h").exists()
        host = (ROOT / "op_host" / f"{stage.kernel}.cpp").read_text()
        assert re.findall(r"\bOP_ADD\((\w+)\)", host) == [stage.op]


def test_sources_include_files_of_the_two_folders_only():
    """CANN copies op_host and op_kernel: a relative include must not leave them."""
    for path in [*ROOT.glob("op_host/**/*"), *ROOT.glob("op_kernel/**/*")]:
        if path.suffix not in {".cpp", ".h"}:
            continue
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            target = (path.parent / name).resolve()
            if target.exists():
                assert target.relative_to(ROOT).parts[0] in {"op_host", "op_kernel"}
            else:
                assert not name.startswith("."), f"{path}: {name} does not exist"


def test_presets():
    presets = json.loads((CANN / "CMakePresets.json").read_text())["configurePresets"]
    base = presets[0]["cacheVariables"]
    assert base["vendor_name"]["value"] == "hyper_parallel_kda"
    assert base["ASCEND_CANN_PACKAGE_PATH"]["value"] == "$env{ASCEND_HOME_PATH}"
    units = {p["name"]: p["cacheVariables"]["ASCEND_COMPUTE_UNIT"]["value"] for p in presets[1:]}
    assert units == {unit: unit for unit in UNITS}


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory):
    home = tmp_path_factory.mktemp("toolkit")
    template = home / "tools/op_project_templates/ascendc/customize"
    (template / "cmake/util").mkdir(parents=True)
    (template / "scripts").mkdir()
    (template / "scripts/install.sh").write_text("vendor_name=customize\n")
    for name, text in STAND_IN.items():
        (template / "cmake" / name).write_text(text)
    return home


def stage(toolkit, folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
    environment["KDA_CANN_BUILD_DIR"] = str(folder)
    if toolkit is not None:
        environment["ASCEND_HOME_PATH"] = str(toolkit)
    command = ["bash", str(CANN / "build.sh"), "--stage-only", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("unit", UNITS)
def test_the_project_configures(toolkit, tmp_path, unit):
    assert stage(toolkit, tmp_path, unit).returncode == 0
    project = tmp_path / unit
    cmake = shutil.which("cmake") or str(Path(sys.executable).with_name("cmake"))
    done = subprocess.run(
        [cmake, "--preset", unit], cwd=project, capture_output=True, text=True,
        env=os.environ | {"ASCEND_HOME_PATH": str(toolkit)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    built = (project / "build_out/opbuild.txt").read_text().split(";")
    assert [Path(path).stem for path in built] == listed_ops()
    assert all(Path(path).exists() for path in built)
    assert (project / "build_out/kernels.txt").read_text() == f"{unit} hyper_parallel_kda"
    installer = (project / "build_out/scripts/install.sh").read_text()
    assert installer == "vendor_name=hyper_parallel_kda\n"
    assert (project / "op_kernel/common").is_dir()


def test_a_missing_toolkit_is_said(tmp_path):
    done = stage(None, tmp_path)
    assert done.returncode == 1
    assert "ASCEND_HOME_PATH is not set" in done.stderr
    done = stage(tmp_path, tmp_path)
    assert done.returncode == 1
    assert "no op project template in" in done.stderr


def test_an_unknown_compute_unit_is_refused(toolkit, tmp_path):
    done = stage(toolkit, tmp_path, "ascend310p")
    assert done.returncode == 1
    assert "unknown argument ascend310p" in done.stderr
