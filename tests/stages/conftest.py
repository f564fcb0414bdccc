# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
import pytest

from tests.support.aclnn import Library


@pytest.fixture(scope="session")
def lib():
    return Library.kda()
