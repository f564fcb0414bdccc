# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Prints the worst relative L2 of every output and gradient over the grid of the chain tests.

    python -m tests.system.grid_report [--cases] [--emulation | --floor | --precise-relay]

--emulation measures the NumPy emulation of the kernels' rounding instead of the kernels: what bf16
costs by itself. --floor measures float64 within each stage, with only the tensors between stages in
the dtypes that the contract gives them: what no kernel can better. --cases lists the case that
every worst value came from.
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
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--emulation", action="store_true")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--precise-relay", action="store_true", help="the kernels with that option")
    parser.add_argument("--device-target", choices=("CPU", "Ascend"), default="CPU")
    args = parser.parse_args(arguments)
    if args.emulation or args.floor:
        numerics = emulation.HANDED_ON if args.floor else emulation.REAL

        def run(x, layout):
            return emulation.results(x, numerics)

    else:
        import mindspore as ms

        from tests.support import chain

        ms.set_device(args.device_target)

        def run(x, layout):
            return chain.results(x, layout, precise_relay=args.precise_relay)

    found = {}
    for title, cases in groups().items():
        found[title] = metrics.Worst()
        for x, layout in cases:
            for loss, want in grid.truths(x).items():
                part = grid.with_loss(x, loss)
                compared = metrics.compare_all(
                    run(part, layout), want, metrics.CONTRACT_LIMITS, part.upstream_norm()
                )
                found[title].add(compared, grid.describe(part, layout))
    table(found)
    if args.cases:
        for title, worst in found.items():
            print(f"\n### {title}\n\n{worst.table()}")


def table(found):
    """One row a tensor, one column a group of cases."""
    print("Worst relative L2 in percent.\n")
    print("| | " + " | ".join(found) + " |")
    print("|---" * (len(found) + 1) + "|")
    for name in metrics.CONTRACT_LIMITS:
        cells = [f"{100 * worst.values[name][0]:.2f}" for worst in found.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")
    faded = [worst.values.get("dh0 (absolute)", (0.0,))[0] for worst in found.values()]
    print("| faded dh0, of the upstream gradient | " + " | ".join(f"{x:.1e}" for x in faded) + " |")


if __name__ == "__main__":
    main()
