# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The report of every kind that the checked library makes, each from a kernel made for it.

    python -m tests.simulator.reports [KERNEL...]

The kernels are in kernels/races.cpp and kernels/unwritten.cpp.
"""

import sys
from unittest import mock

from tests.simulator import test_races, test_unwritten
from tests.simulator.device import Device, DeviceError
from tests.support import build_tree

# kernel: (its way of being wrong, how to launch it)
RACES = {name: (0, {}) for name in test_races.ONE_CORE} | {
    "test_race_cube": (0, {}),
    "test_race_blocks": (0, {"blocks": 2, "resident": True}),
    "test_race_aiv_aic": (0, {}),
    "test_race_atomic": (2, {}),
    "test_flag_twice": (0, {}),
    "test_flag_not_set": (0, {}),
    "test_flag_left": (0, {}),
    "test_flag_cross": (1, {}),
}
UNWRITTEN = [f"unwritten_{name}" for name in test_unwritten.CASES]
KERNELS = [*RACES, *UNWRITTEN]


def report(device, kernel):
    """What a launch of the wrong kernel says."""
    checks = "races" if kernel in RACES else "memory"
    with mock.patch.dict("os.environ", {"ASCEND_SIM_CHECK": checks}):
        try:
            if kernel in RACES:
                how, options = RACES[kernel]
                test_races.run(device, kernel, how, **options)
            else:
                test_unwritten.run(device, kernel.removeprefix("unwritten_"), 1)
        except DeviceError as error:
            return str(error)
    raise AssertionError(f"{kernel}: nothing was found")


def main():
    device = Device(build_tree.build("sim_test_kernels_checked"))
    for kernel in sys.argv[1:] or KERNELS:
        print(report(device, kernel), end="\n\n")


if __name__ == "__main__":
    main()
