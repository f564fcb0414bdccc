# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What the simulator's checks cost: the checked library against the plain one, stage by stage.

    python -m benchmarks.bench_checker [--plain LIB] [--checked LIB] [--against LIB] [--rounds 15]

With --against (the plain library of another commit, say) it also compares the two plain ones. Both
libraries of a pair are loaded into one process and run the same call one after the other, the order
alternating from round to round; a row gives the median of the rounds' ratios and their quartiles,
so that what disturbs the machine disturbs both sides of a ratio. The clock is the process's CPU
time, unless --threads is more than 1. Two copies of one library show what the clock is worth.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from hyper_parallel_kda import stage_table as table
from tests.support import build_tree
from tests.support.aclnn import Library
from tests.support.stage_calls import complete_call

CHECKED_BOUND = 15
SAMPLE = 5e-3  # seconds that a sample lasts at least: short calls are repeated


class Calls:
    """A call of every stage, the same for every library."""

    def __init__(self, heads, tokens):
        sizes = {"tokens": tokens, "key_heads": heads, "value_heads": heads}
        self.stages = {
            stage.name: (stage.op, *complete_call(stage, **sizes)) for stage in table.STAGES
        }

    def seconds(self, library, name, clock, count=1):
        """Of `count` launches, without what prepares them."""
        return sum(self._launch(library, name, clock) for _ in range(count))

    def _launch(self, library, name, clock):
        op, arguments, outputs = self.stages[name]
        absent = {output["name"]: None for output in library.ops[op]["outputs"]}
        call = library.prepare(op, outputs={**absent, **outputs}, **arguments)
        try:
            workspace = np.full(call.workspace_size, 0xFF, np.uint8)
            begun = clock()
            call.run(workspace)
            return clock() - begun
        finally:
            call.close()


def compare(calls, base, other, rounds, clock):
    """{stage: [(seconds a launch of base, of other), a round]}, and their sums, 'all stages'."""
    pairs, counts = {name: [] for name in calls.stages}, {}
    for name in pairs:
        for library in (other, base):  # the first call of a library finds no memory mapped
            calls.seconds(library, name, clock)
        counts[name] = max(1, round(SAMPLE / max(calls.seconds(base, name, clock), 1e-5)))
    for number in range(rounds):
        for name in pairs:
            both = {}
            for library in (base, other) if number % 2 == 0 else (other, base):
                both[library] = calls.seconds(library, name, clock, counts[name]) / counts[name]
            pairs[name].append((both[base], both[other]))
    sums = np.sum([pairs[name] for name in calls.stages], axis=0)
    return {**pairs, "all stages": sums}


def report(title, pairs):
    """Prints the table; returns {row: median ratio}."""
    print(f"\n{title}\n")
    print("| stage | base, ms | other, ms | ratio | quartiles |")
    print("|---|---|---|---|---|")
    medians = {}
    for name, rounds in pairs.items():
        seconds = np.array(rounds)
        base, other = 1e3 * np.median(seconds, axis=0)
        low, middle, high = np.quantile(seconds[:, 1] / seconds[:, 0], [0.25, 0.5, 0.75])
        print(f"| {name} | {base:.2f} | {other:.2f} | {middle:.3f} | {low:.3f} to {high:.3f} |")
        medians[name] = float(middle)
    return medians


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", type=Path, help="default: the build tree's")
    parser.add_argument("--checked", type=Path, help="default: the one beside the plain library")
    parser.add_argument("--against", type=Path, help="another plain library, the base of a table")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(arguments)
    plain_path = args.plain or build_tree.library()
    checked_path = args.checked or plain_path.with_name(f"{plain_path.stem}_checked.so")
    clock = time.process_time if args.threads == 1 else time.perf_counter
    calls = Calls(args.heads, args.tokens)

    def load(path):
        library = Library(path.resolve())
        library.set_threads(args.threads)
        return library

    print(
        f"{args.heads} heads, {args.tokens} tokens, {args.threads} threads, {args.rounds} rounds, "
        + ("CPU time" if args.threads == 1 else "wall time")
    )
    plain, medians = load(plain_path), {}
    if args.against:
        pairs = compare(calls, load(args.against), plain, args.rounds, clock)
        medians["plain"] = report(f"base {args.against}, other {plain_path}", pairs)
    pairs = compare(calls, plain, load(checked_path), args.rounds, clock)
    medians["checked"] = report(f"base {plain_path}, other {checked_path}", pairs)
    whole, worst = medians["checked"]["all stages"], max(medians["checked"].values())
    print(
        f"\nChecks take {whole:.1f} x the time over all stages, {worst:.1f} x at worst "
        f"(bound: {CHECKED_BOUND})."
    )
    return medians


if __name__ == "__main__":
    main()
