# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Options that every test folder sees, and a new seed for the property tests of every run."""

import secrets

import pytest

from tests.support import inputs, metrics

worst = {}  # with --draws: (test function, tensor) to (share of its limit, test, what was measured)


def pytest_addoption(parser):
    parser.addoption(
        "--device-target",
        choices=("CPU", "Ascend"),
        default="CPU",
        help="MindSpore's device target for tests/system (default CPU: the simulator)",
    )
    parser.addoption(
        "--draws",
        type=int,
        default=1,
        help="run tests with fresh inputs so often, and tell what came closest to its limit",
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    draws, before = pyfuncitem.config.getoption("--draws"), len(inputs.FRESH)
    metrics.JUDGED.clear()
    try:
        result = yield
        if len(inputs.FRESH) > before:
            names = pyfuncitem._fixtureinfo.argnames
            for _ in range(1, draws):
                pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    finally:
        for c in metrics.JUDGED if draws > 1 and len(inputs.FRESH) > before else ():
            share = c.value / c.limit if c.limit else float("inf")
            key = (pyfuncitem.nodeid.split("[")[0], c.name)
            worst[key] = max(worst.get(key, (0.0,)), (share, pyfuncitem.nodeid, c.value))
    return result


def pytest_configure(config):
    if config.getoption("--hypothesis-seed") is None:
        from hypothesis import core

        config.option.hypothesis_seed = core.global_force_seed = secrets.randbelow(2**32)


def pytest_terminal_summary(terminalreporter, config):
    seed = config.getoption("--hypothesis-seed")
    terminalreporter.write_line(f"property tests: --hypothesis-seed={seed}")
    if worst:
        terminalreporter.write_line("closest to their limits (share of it, measured):")
    for (_, name), (share, test, value) in sorted(worst.items(), key=lambda x: -x[1][0])[:30]:
        terminalreporter.write_line(f"  {share:.2f} {value:.2e} {name:12} {test}")
