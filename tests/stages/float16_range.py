# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Prints what the size of d_o and dht does to bwd_finalize in float16.

    python -m tests.stages.float16_range [--seed N]

d_o and dht are normal deviates times a power of two, and so is everything that the stage makes of
them: the relative L2 of its results against float64, and, for dq, dk and dv, that of the exact ones
rounded to float16. Above WHOLE operands overflow, below it dq, then dv and dk, are below float16's
normal numbers.
"""

import argparse

import numpy as np

from tests.stages import bwd_cases, finalize_runs
from tests.support.aclnn import Library
from tests.support.io_types import FLOAT16
from tests.support.metrics import relative_l2

WHOLE = (2.0**-8, 2.0**9)
FADING = (2.0**-16, 2.0**-12)
GATES = (("safe", "mixed"), ("softplus", "mixed"), ("activated", "lasting"))
ROUNDED = ("dq", "dk", "dv")


def measure(lib, seed, upstream, gate, decay):
    """{result: relative L2, or infinity}, {result: relative L2 of rounding alone}."""
    case = bwd_cases.make(
        seed,
        io=FLOAT16,
        upstream=upstream,
        tokens=129,
        heads=8,
        gate=gate,
        decay=decay,
        initial_state=True,
    )
    call = finalize_runs.arguments(case, gate_type=np.dtype(np.float32))
    got = finalize_runs.head_major(lib.call(finalize_runs.OP, **call))
    with np.errstate(invalid="ignore"):
        want = finalize_runs.expected(case)
        errors = {name: relative_l2(got[name], want[name]) for name in got}
        rounding = {name: relative_l2(FLOAT16.round(want[name]), want[name]) for name in ROUNDED}
    return errors, rounding


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=5)
    seed = parser.parse_args().seed
    lib = Library.kda()
    rounded = [f"{name} rounded" for name in ROUNDED]
    print("| |", " | ".join((*finalize_runs.OUTPUTS, *rounded)), "|")
    print("|---" * (len(finalize_runs.OUTPUTS) + len(ROUNDED) + 1), end="|\n")
    for exponent in (*range(-24, -4, 2), 0, *range(6, 15)):
        worst, floor = {}, {}
        for gate, decay in GATES:
            for total, part in zip(
                (worst, floor), measure(lib, seed, 2.0**exponent, gate, decay), strict=True
            ):
                for name, value in part.items():
                    total[name] = max(total.get(name, 0.0), value)
        values = [worst[name] for name in finalize_runs.OUTPUTS] + [floor[n] for n in ROUNDED]
        print(f"| 2^{exponent} |", " | ".join(f"{100 * value:.2g}" for value in values), "|")


if __name__ == "__main__":
    main()
