# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What each numerical choice of the kernels buys where rounding is magnified most.

Strong decay, T = 65, constant dht, a loss on the final state alone: the gradients of the last
rows are then sums over one row of v or k, and where such a sum nearly cancels every rounding before
it shows. For 50 random seeds, and for the 6 worst of 1,500 seeds by each of three searches, this
prints the relative L2 against float64 of the NumPy emulation with one choice after the other
switched off, and of the kernels as they are. The last table has random upstream gradients of the
output, where the intra-chunk choices matter.

    python -m benchmarks.worst_cases [--random 50] [--count 1500] [--keep 6] [--no-kernels]
"""

import argparse
from dataclasses import replace

import numpy as np

from tests.support import emulation, inputs, metrics

REAL = emulation.REAL
# No switch: everything the older design did, which is what the known failure was measured on.
OLD = replace(REAL, fold_beta=False, regroup=False, exclude_diagonal=False, paired_gate=False)
VARIANTS = {
    "emulation, all choices": REAL,
    "without beta folding": replace(REAL, fold_beta=False),
    "without regrouping": replace(REAL, regroup=False),
    "without either": replace(REAL, fold_beta=False, regroup=False),
    "diagonal pairs in dgk": replace(REAL, exclude_diagonal=False),
    "scores' gradients in one bf16": replace(REAL, split_scores=False),
    "plain bf16 intra matrices": replace(REAL, paired_gate=False),
    "hi + lo instead of paired gate terms": replace(REAL, paired_gate=False, split_intra=True),
    "none of them": OLD,
    "emulation, precise_relay": emulation.PRECISE_RELAY,
}
FINAL_STATE_COLUMNS = ("dk", "dv", "dbeta", "dg", "da_log", "ddt_bias")
OUTPUT_COLUMNS = ("output", "dq", "dk", "dg", "da_log", "ddt_bias")


def kernels():
    """The kernels' results as a function of the inputs, or None with the reason printed."""
    try:
        from tests.support import chain

        chain.forward(inputs.make_inputs(0, tokens=1, heads=1))
    except Exception as error:  # whatever is missing, the emulation still runs
        print(f"(kernels not run: {type(error).__name__}: {error})\n")
        return None
    return chain.results


def measure(cases, run, columns):
    """{column: relative L2 of every case}"""
    values = {name: [] for name in columns}
    for x, want in cases:
        got = run(x)
        for name in columns:
            values[name].append(metrics.relative_l2(got[name], want[name]))
    return values


def _cell(values):
    return f"{100 * np.median(values):.2f} / {100 * np.max(values):.2f}"


def table(title, cases, columns, runs):
    print(f"### {title}\n")
    print("Relative L2 in %, median / max.\n")
    print("| | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, run in runs.items():
        values = measure(cases, run, columns)
        print(f"| {name} | " + " | ".join(_cell(values[c]) for c in columns) + " |", flush=True)
    print()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=50, help="random seeds")
    parser.add_argument("--count", type=int, default=1500, help="seeds searched")
    parser.add_argument("--keep", type=int, default=6, help="worst seeds kept of a search")
    parser.add_argument("--tokens", type=int, default=65)
    parser.add_argument("--no-kernels", action="store_true", help="emulation only")
    args = parser.parse_args(arguments)

    runs = {name: (lambda x, nm=nm: emulation.results(x, nm)) for name, nm in VARIANTS.items()}
    real = None if args.no_kernels else kernels()
    if real is not None:
        runs["the kernels"] = real
        runs["the kernels, precise_relay"] = lambda x: real(x, precise_relay=True)

    def with_truth(seeds, make):
        return [(x, x.results()) for x in (make(seed) for seed in seeds)]

    def final_state(seed):
        return inputs.final_state_only(seed, args.tokens)

    print(f"## Loss on the final state alone, strong decay, T = {args.tokens}, dht = 1\n")
    table(
        f"{args.random} random seeds",
        with_truth(range(args.random), final_state),
        FINAL_STATE_COLUMNS,
        runs,
    )
    for search in inputs.SEARCHES:
        seeds = inputs.worst_seeds(search, args.tokens, args.count, args.keep)
        table(
            f"{args.keep} of {args.count} seeds with the smallest {search}: "
            + ", ".join(map(str, seeds)),
            with_truth(seeds, final_state),
            FINAL_STATE_COLUMNS,
            runs,
        )
    print(f"## Loss on the output, strong decay, T = {args.tokens}, random d_o\n")

    def output_loss(seed):
        return inputs.make_inputs(seed, tokens=args.tokens, heads=1, decay="strong", loss="output")

    table("10 random seeds", with_truth(range(10), output_loss), OUTPUT_COLUMNS, runs)


if __name__ == "__main__":
    main()
