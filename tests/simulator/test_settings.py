# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The simulator's environment variables: used when good, refused with their name when not."""

import os
import subprocess
import sys

import pytest

from tests.support import build_tree

SEED_MAX = 2**64 - 1

# A launch without any host side; then again after the C function has set a good value.
LAUNCH = """
import sys
import numpy as np
from tests.simulator.device import Device, DeviceError
device = Device()
def run():
    options = dict(out=np.zeros(8192, np.int32), workspace=65536, seed=None)
    try:
        device.run("test_all_sum", [2], blocks=2, resident=True, **options)
        print("ran")
    except DeviceError as error:
        print(error)
run()
run()
if sys.argv[1]:
    assert getattr(device.dll, sys.argv[1])(3) == 0
    run()
"""

# The first phase of an operator's call.
PREPARE = """
import numpy as np
from tests.support import build_tree
from tests.support.aclnn import AclnnError, Library
lib = Library(build_tree.build("test_opapi_sim"))
x = np.ones((2, 16), np.float32)
try:
    call = lib.prepare("SimTestRowUpdate", state=x, x=x, A_scale=1.0, outputs={"state_copy": None})
    call.close()
    print("prepared")
except AclnnError as error:
    print(error.status, error.message)
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    for target in ("sim_test_kernels", "test_opapi_sim"):
        build_tree.build(target)


def child(code, *arguments, **variables):
    environment = {name: text for name, text in os.environ.items() if name not in SETTERS}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**environment, **variables},
        cwd=build_tree.ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def expected(variable, high, got, low=1):
    return f"{variable}: expected a whole number from {low} to {high}, got '{got}'"


BAD = [
    ("ASCEND_SIM_THREADS", "two", 1, 4096),
    ("ASCEND_SIM_THREADS", "", 1, 4096),
    ("ASCEND_SIM_THREADS", "0", 1, 4096),
    ("ASCEND_SIM_THREADS", "-1", 1, 4096),
    ("ASCEND_SIM_THREADS", "4x", 1, 4096),
    ("ASCEND_SIM_THREADS", " 4", 1, 4096),
    ("ASCEND_SIM_THREADS", "4097", 1, 4096),
    ("ASCEND_SIM_CORES", "twenty", 1, 4096),
    ("ASCEND_SIM_CORES", "2.5", 1, 4096),
    ("ASCEND_SIM_SCHEDULE", "0x10", 0, SEED_MAX),
    ("ASCEND_SIM_SCHEDULE", "random", 0, SEED_MAX),
    ("ASCEND_SIM_SCHEDULE", str(SEED_MAX + 1), 0, SEED_MAX),
    ("ASCEND_SIM_POISON", "yes", 0, 1),
]
SUBNORMALS = ("ASCEND_SIM_SUBNORMALS", "2", 0, 1)  # Device replaces it at once
SETTERS = {
    "ASCEND_SIM_THREADS": "ascendSimSetThreads",
    "ASCEND_SIM_CORES": "ascendSimSetCores",
    "ASCEND_SIM_SCHEDULE": "ascendSimSetSchedule",
    "ASCEND_SIM_SUBNORMALS": "",
    "ASCEND_SIM_POISON": "",
    "ASCEND_SIM_CHECK": "",
}


@pytest.mark.parametrize("variable, value, low, high", BAD)
def test_a_bad_value_fails_every_launch_until_it_is_replaced(variable, value, low, high):
    said = child(LAUNCH, SETTERS[variable], **{variable: value})
    error = "kernel test_all_sum: " + expected(variable, high, value, low)
    assert said[:2] == [error, error]
    assert said[2:] == (["ran"] if SETTERS[variable] else [])


@pytest.mark.parametrize("variable, value, low, high", [*BAD[:1], *BAD[7:10], SUBNORMALS])
def test_a_bad_value_fails_the_first_phase_of_a_call(variable, value, low, high):
    """Before the tiling, which would already count cores that nobody asked for."""
    (said,) = child(PREPARE, **{variable: value})
    status, message = said.split(" ", 1)
    assert status == "361001"
    assert message.endswith("GetWorkspaceSize: " + expected(variable, high, value, low))


@pytest.mark.parametrize("value", ["", "race", "races,", "races;memory", "OFF", "off,races"])
def test_checks_that_do_not_exist(value):
    said = child(LAUNCH, "", ASCEND_SIM_CHECK=value)
    known = "off, races, memory or races,memory"
    error = f"kernel test_all_sum: ASCEND_SIM_CHECK: expected {known}, got '{value}'"
    assert said == [error, error]


def test_good_values():
    good = dict(
        ASCEND_SIM_THREADS="4096",
        ASCEND_SIM_CORES="0002",
        ASCEND_SIM_SCHEDULE=str(SEED_MAX),
        ASCEND_SIM_SUBNORMALS="1",
        ASCEND_SIM_POISON="1",
    )
    assert child(LAUNCH, "", **good) == ["ran", "ran"]
    assert child(PREPARE, **good) == ["prepared"]
    assert child(PREPARE) == ["prepared"]
    for checks in ("off", "races", "memory", "races,memory", "memory,races"):
        assert child(PREPARE, ASCEND_SIM_CHECK=checks) == ["prepared"]


def test_the_environment_seeds_the_schedule():
    code = LAUNCH.split("run()\nrun()")[0].replace('"test_all_sum", [2]', '"test_bad_sync", [0]')
    (said,) = child(code + "run()\n", "", ASCEND_SIM_SCHEDULE="41")
    assert "deadlock" in said and said.endswith("(under schedule 41)")
