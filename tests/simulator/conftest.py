# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
import os

import pytest

from tests.support import build_tree
from tests.support.aclnn import Library


@pytest.fixture(scope="session")
def test_ops():
    """The op library made of tests/simulator/op_project."""
    if not list((build_tree.ROOT / "simulator/src/device").glob("*.cpp")):
        pytest.skip("simulator/src/device is empty")
    path = os.environ.get("ASCEND_SIM_TEST_OPAPI") or build_tree.build("test_opapi_sim")
    return Library(path)
