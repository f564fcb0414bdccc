# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
import os

import pytest

from tests.simulator.device import Device
from tests.support import build_tree
from tests.support.aclnn import Library


@pytest.fixture(scope="session")
def test_ops():
    """The op library made of tests/simulator/op_project."""
    path = os.environ.get("ASCEND_SIM_TEST_OPAPI") or build_tree.build(
        build_tree.tested("test_opapi_sim")
    )
    return Library(path)


@pytest.fixture(scope="session")
def device():
    """The kernels of tests/simulator/kernels, launched without a host side."""
    return Device()
