# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""python -m tests.mutation: see README.md."""

import argparse
import json
import sys
import time

from tests.mutation import build, campaign, sites


def arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the mutants, build nothing")
    parser.add_argument("--kind", action="append", choices=sites.KINDS, help="may be repeated")
    parser.add_argument("--only", metavar="FILE:LINE", help="mutants of one line (or of one file)")
    parser.add_argument("--sample", type=int, metavar="N", help="N of them, every kind among them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--library", default=build.CHECKED, help="CMake target (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="outcomes, one JSON object a line")
    parser.add_argument("--keep", action="store_true", help="leave the scratch trees")
    parser.add_argument("--verbose", action="store_true", help="print every report")
    return parser.parse_args()


def selected(mutants, options):
    def wanted(m):
        return (not options.kind or m.kind in options.kind) and (
            not options.only or options.only in (m.file, m.place)
        )

    return [m for m in mutants if wanted(m)]


def main():
    options = arguments()
    if options.list:
        for mutant in selected(sites.find(sites.load(build.KERNELS)), options):
            print(mutant.name)
        return 0
    build.lower_priority()
    run = campaign.Campaign(options.library, options.keep)
    mutants = selected(run.mutants, options)
    if options.sample:
        mutants = run.sample(options.sample, options.seed)
    began = time.monotonic()
    written = open(options.json, "w") if options.json else None
    counted = 0

    def progress(outcome):
        nonlocal counted
        counted += 1
        text = outcome.text if options.verbose else outcome.text[:160].replace("\n", " ")
        mutant = outcome.mutant
        print(f"[{counted}/{len(mutants)}] {outcome.how:9} {mutant.place} {mutant.name}  {text}",
              flush=True)  # fmt: skip
        if written:
            line = {"mutant": outcome.mutant.name, "how": outcome.how, "text": outcome.text}
            print(json.dumps(line), file=written, flush=True)

    outcomes = run.run(mutants, options.jobs, progress)
    print(f"\n{run.builder.library}, {len(mutants)} mutants, {time.monotonic() - began:.0f} s\n")
    print(campaign.table(outcomes))
    known = campaign.known_survivors()
    survivors = [o for o in outcomes if not o.caught]
    if survivors:
        print("\nnot caught:")
        for outcome in survivors:
            print(f"  {outcome.mutant.name}\n    {known.get(outcome.mutant.name, 'NO REASON')}")
    wrong = campaign.complaints(outcomes, known, {m.name for m in run.mutants})
    if run.builder.library == build.CHECKED and wrong:
        print("\n" + "\n".join(wrong), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
