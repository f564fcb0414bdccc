# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Prints the worst relative L2 of every output and gradient over the grid of the chain tests.

    python -m tests.system.grid_report [--emulation] [--device-target CPU]

--emulation measures the NumPy emulation of the kernels' rounding instead of the kernels: what bf16
costs by itself.
"""

import argparse

from tests.support import emulation, inputs, metrics
from tests.system import grid

HARD_DECAYS = ("medium", "mixed", "strong", "bound")
HARD_TOKENS = (17, 64, 65, 128, 200)


def groups():
    """Title -> cases (x, layout)."""
    return {
        "independent keys, beta up to 1": [
            grid.case(t, d) for t in grid.TOKENS for d in inputs.DECAYS
        ],
        "independent keys, beta up to 2": [
            grid.case(t, d, beta="two") for t in HARD_TOKENS for d in inputs.DECAYS
        ],
        "nearly parallel keys, beta up to 1": [
            grid.case(t, d, keys="parallel") for t in HARD_TOKENS for d in HARD_DECAYS
        ],
        "nearly parallel keys, beta up to 2": [
            grid.case(t, d, keys="parallel", beta="two") for t in HARD_TOKENS for d in HARD_DECAYS
        ],
        "nearly parallel keys, states that last": [
            grid.case(t, decay, keys="parallel", beta=beta)
            for t in HARD_TOKENS
            for decay in grid.LONG_STATES
            for beta in ("sigmoid", "two")
        ],
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emulation", action="store_true")
    parser.add_argument("--device-target", choices=("CPU", "Ascend"), default="CPU")
    args = parser.parse_args(arguments)
    if args.emulation:

        def run(x, layout):
            return emulation.results(x)

    else:
        import mindspore as ms

        from tests.support import chain

        ms.set_device(args.device_target)
        run = chain.results

    for title, cases in groups().items():
        worst = metrics.Worst()
        for x, layout in cases:
            for loss, want in grid.truths(x).items():
                part = grid.with_loss(x, loss)
                worst.add(
                    metrics.compare_all(
                        run(part, layout), want, grid.limits(x), part.upstream_norm()
                    ),
                    grid.describe(part, layout),
                )
        print(f"### {title} ({3 * len(cases)} cases)\n\n{worst.table()}\n", flush=True)


if __name__ == "__main__":
    main()
