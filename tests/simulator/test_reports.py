# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The reports that docs/simulator.md shows are what the checked library says."""

import re

import pytest

from tests.simulator import reports
from tests.simulator.device import Device
from tests.support import build_tree

TEXT = (build_tree.ROOT / "docs/simulator.md").read_text()
SHOWN = {
    re.match(r"kernel (\w+)", block)[1]: block
    for block in re.findall(r"^```text\n(kernel .*?)\n```$", TEXT, re.MULTILINE | re.DOTALL)
}


@pytest.fixture(scope="module")
def checked():
    return Device(build_tree.build("sim_test_kernels_checked"))


def without_lines(text):
    return re.sub(r"(\.cpp):\d+", r"\1", text)


@pytest.mark.parametrize("kernel", SHOWN)
def test_the_page_shows_what_is_said(checked, kernel):
    assert without_lines(reports.report(checked, kernel)) == without_lines(SHOWN[kernel])


def test_the_page_explains_every_kind(checked):
    assert len(SHOWN) >= 5
    lines = "\n".join(reports.report(checked, kernel) for kernel in reports.KERNELS).splitlines()
    kinds = {line for line in lines if not line.startswith((" ", "kernel "))}
    assert len(kinds) >= 7
    for kind in kinds:
        assert f"`{kind}`" in TEXT, kind
