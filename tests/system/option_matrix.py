# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The worst relative L2 of the output, the final state and every gradient, option by option.

    python -m tests.system.option_matrix [--seeds 3] [--first SEED] [--only OPTION]

Every option is taken alone, away from the core set-up, for dense and for packed sequences, with
fresh seeds; the numbers are percent. Lengths go over tails, chunk bounds and empty sequences. A
star: some case is over the contract's limit, and within what the bf16 tensors between the stages
cost by themselves (tests/support/options.py judges); "over" would be neither, and exit status 1.
"""

import argparse
import secrets
import sys

import numpy as np

from tests.support import metrics, options

NAMES = tuple(metrics.CONTRACT_LIMITS)
DENSE = (17, 64, 65, 130)
PACKED = ((1, 64, 0, 65), (33, 130), (16, 17, 15, 80))


def setups(changes, packed, seeds):
    """The cases of one row."""
    core = {**options.CORE, **changes}
    if packed:
        return [options.Setup(seed=s, lengths=lengths, **core) for s in seeds for lengths in PACKED]
    return [options.Setup(seed=s, tokens=tokens, **core) for s in seeds for tokens in DENSE]


def row(changes, packed, seeds):
    """{tensor: (worst value, mark)}"""
    worst = {}
    for setup in setups(changes, packed, seeds):
        allowed = options.limits(setup)
        for c in options.compare(setup):
            if c.detail.startswith("absolute"):
                continue  # a dh0 that has faded, held to a limit on the upstream gradient's scale
            mark = "" if c.value <= allowed[c.name] else "*" if c.passed else " over"
            worst[c.name] = max(worst.get(c.name, (0.0, "")), (c.value, mark))
    return worst


def cell(found):
    if found is None:
        return "-"
    value, mark = found
    return f"{100 * value:.2f}{mark}" if np.isfinite(value) else "inf"


def table(seeds, names=tuple(options.OPTIONS)):
    print("| option | | " + " | ".join(NAMES) + " |")
    print("|---" * (len(NAMES) + 2) + "|", flush=True)
    over = []
    for name in names:
        for packed in (False, True):
            found = row(options.OPTIONS[name], packed, seeds)
            over += [(name, n) for n, (_, mark) in found.items() if mark == " over"]
            cells = [cell(found.get(n)) for n in NAMES]
            kind = "packed" if packed else "dense"
            print(f"| {name} | {kind} | " + " | ".join(cells) + " |", flush=True)
    return over


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, help="the first seed; default: a new one")
    parser.add_argument("--only", action="append", choices=tuple(options.OPTIONS), metavar="OPTION")
    parser.add_argument("--device-target", choices=("CPU", "Ascend"), default="CPU")
    args = parser.parse_args(arguments)
    import mindspore as ms

    # MindSpore takes no device, not even the same, once any kernel has run.
    if ms.get_context("device_target") != args.device_target:
        ms.set_device(args.device_target)
    first = secrets.randbelow(2**31) if args.first is None else args.first
    print(f"Worst relative L2 in percent; seeds {first} to {first + args.seeds - 1}.\n")
    over = table(range(first, first + args.seeds), args.only or tuple(options.OPTIONS))
    print(f"\nOver every limit: {over or 'none'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
