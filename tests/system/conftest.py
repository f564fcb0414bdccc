# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Tests through the public Python API, on whatever device --device-target names."""

import ctypes
import os

import mindspore as ms
import pytest

from hyper_parallel_kda.loader import OPAPI_VARIABLE, SIMULATOR_LIBRARY
from tests.support import build_tree


def pytest_configure(config):
    """While tests are collected: MindSpore takes no other device once any kernel has run."""
    target = config.getoption("--device-target")
    if ms.get_context("device_target") != target:
        ms.set_device(target)


@pytest.fixture(scope="package", autouse=True)
def checked_library(request):
    """On the simulator, the checked library that is installed beside the plain one."""
    if request.config.getoption("--device-target") != "CPU" or os.environ.get(OPAPI_VARIABLE):
        yield
        return
    name = build_tree.tested("libkda_opapi_sim")
    os.environ[OPAPI_VARIABLE] = str(SIMULATOR_LIBRARY.with_name(f"{name}.so"))
    yield
    del os.environ[OPAPI_VARIABLE]


@pytest.fixture(scope="session")
def device_target(request):
    return request.config.getoption("--device-target")


class Simulator:
    """The simulator's controls, in the very library that the calls use."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.threads = self.library.ascendSimSetThreads
        self.cores = self.library.ascendSimSetCores
        self.subnormals = self.library.ascendSimSetSubnormals


@pytest.fixture
def simulator(device_target):
    """Sets threads, cores, subnormal numbers; the defaults come back after the test."""
    if device_target != "CPU":
        pytest.skip("block and thread counts can be chosen in the simulator only")
    from hyper_parallel_kda import loader

    control = Simulator(loader.op_library_path())
    yield control
    control.threads(os.cpu_count())
    control.cores(24)
    control.subnormals(0)
