# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Options that every test folder sees."""


def pytest_addoption(parser):
    parser.addoption(
        "--device-target",
        choices=("CPU", "Ascend"),
        default="CPU",
        help="MindSpore's device target for tests/system (default CPU: the simulator)",
    )
