# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Prints the error of da_log head by head: relative to itself, and to the terms that it sums.

python -m tests.system.da_log_report [--seed S] [--heads H]
"""

import argparse

import numpy as np

from tests.support import chain, inputs, sizes

GATES = ("safe", "softplus")
TOKENS = (64, 200)
MUCH = 0.1


def errors(seed, heads, **options):
    """Of every head: relative to da_log, and to the larger of that and its terms."""
    x = inputs.make_inputs(seed, heads=heads, initial_state=True, **options)
    got, want = chain.results(x)["da_log"], x.results()
    terms = sizes.da_log_terms(x, want["dg"])
    own, error = np.abs(want["da_log"]), np.abs(got - want["da_log"])
    return error / own, error / np.maximum(own, np.sqrt(np.sum(terms**2, (0, 2, 3))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seed", type=int, help="of the first case (default: another in every run)"
    )
    parser.add_argument("--heads", type=int, default=16, help="of every case")
    args = parser.parse_args()
    seed = inputs.fresh_seed() if args.seed is None else args.seed
    print(f"--seed {seed}")
    print(
        "| keys | heads | of itself: median | above 10 % | worst | of its terms: median | worst |"
    )
    print("|---" * 7 + "|")
    for keys in inputs.KEYS:
        found = []
        for gate in GATES:
            for decay in inputs.COMMON_DECAYS:
                for tokens in TOKENS:
                    case = {"gate": gate, "decay": decay, "tokens": tokens, "keys": keys}
                    found.append(errors(seed, args.heads, **case))
                    seed += 1
        own, terms = np.concatenate(found, axis=1)
        values = (np.median(own), np.mean(own > MUCH), own.max(), np.median(terms), terms.max())
        print(f"| {keys} | {own.size} |", " | ".join(f"{100 * v:.2g} %" for v in values), "|")


if __name__ == "__main__":
    main()
