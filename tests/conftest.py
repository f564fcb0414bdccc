# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Options that every test folder sees, and a new seed for the property tests of every run."""

import secrets


def pytest_addoption(parser):
    parser.addoption(
        "--device-target",
        choices=("CPU", "Ascend"),
        default="CPU",
        help="MindSpore's device target for tests/system (default CPU: the simulator)",
    )


def pytest_configure(config):
    if config.getoption("--hypothesis-seed") is None:
        from hypothesis import core

        config.option.hypothesis_seed = core.global_force_seed = secrets.randbelow(2**32)


def pytest_terminal_summary(terminalreporter, config):
    seed = config.getoption("--hypothesis-seed")
    terminalreporter.write_line(f"property tests: --hypothesis-seed={seed}")
