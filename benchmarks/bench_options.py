# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What each option costs beside the core set-up, and the core set-up beside another build's.

    python -m benchmarks.bench_options [--against LIB] [--rounds 9]

Each table's rows are medians of ratios of pairs that ran one after the other, the order alternating
from round to round, with their quartiles: what disturbs the machine disturbs both sides. The clock
is the process's CPU time. With --against (the plain simulator library of another commit, say) the
six stages of the op run on both libraries, in one process, with the operands that both know; the
exit status is 1 where all stages together take more than 3 % longer. docs/cost.md has a run of it.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import mindspore as ms

from benchmarks.bench_checker import Calls, compare, report
from hyper_parallel_kda import loader
from tests.support import build_tree, options
from tests.support.aclnn import Library

MOST = 1.03  # what the core set-up may take of its time in another build
# The stages that npu_chunk_kda runs, forward and backward.
CHAIN = ("fwd_prepare", "fwd_h", "fwd_finalize", "bwd_prepare", "bwd_dhu", "bwd_finalize")


class CoreCalls(Calls):
    """The op's stages with what all the libraries know."""

    def __init__(self, heads, tokens, libraries):
        super().__init__(heads, tokens)
        self.stages = {name: self._known(*self.stages[name], libraries) for name in CHAIN}

    @staticmethod
    def _known(op, arguments, outputs, libraries):
        arguments = {**arguments, "use_beta_sigmoid_in_kernel": True}

        def common(*groups):
            named = [{d["name"] for g in groups for d in lib.ops[op][g]} for lib in libraries]
            return set.intersection(*named)

        taken, given = common("inputs", "attrs"), common("outputs")
        return (
            op,
            {name: value for name, value in arguments.items() if name in taken},
            {name: value for name, value in outputs.items() if name in given},
        )


class Step:
    """One forward and backward of npu_chunk_kda with a set-up, without what makes its tensors."""

    def __init__(self, setup):
        self.setup, self.x = setup, options.inputs_of(setup)
        self.named = options.named_tensors(setup, self.x)

    def seconds(self):
        begun = time.process_time()
        options.raw_results(self.setup, self.x, self.named)
        return time.process_time() - begun


def lengths(tokens):
    """Packed sequences of unlike lengths with as many tokens."""
    third = tokens // 3
    return (third + 7, 0, third - 7, tokens - 2 * third)


def option_rounds(tokens, rounds):
    """{option: [(seconds of the core set-up, of the option), a round]}"""
    wanted = {**options.OPTIONS, "packed": {"lengths": lengths(tokens)}}
    del wanted["batch of 2"]  # which has twice the work
    core = Step(options.Setup(tokens=tokens, **options.CORE))
    pairs = {}
    for name, changes in wanted.items():
        step = Step(options.Setup(**{**options.CORE, "tokens": tokens, **changes}))
        core.seconds(), step.seconds()
        pairs[name] = []
        for number in range(rounds):
            both = {one: one.seconds() for one in ((core, step), (step, core))[number % 2]}
            pairs[name].append((both[core], both[step]))
    return pairs


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", type=Path, help="default: the build tree's")
    parser.add_argument("--against", type=Path, help="another plain library, the base of a table")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args(arguments)
    plain = (args.plain or build_tree.library()).resolve()
    medians = {}
    if args.against:
        libraries = [Library(args.against.resolve()), Library(plain)]
        for library in libraries:
            library.set_threads(1)
        calls = CoreCalls(args.heads, args.tokens, libraries)
        pairs = compare(calls, *libraries, args.rounds, time.process_time)
        medians["core"] = report(f"base {args.against}, other {plain}", pairs)
    os.environ[loader.OPAPI_VARIABLE] = str(plain)
    os.environ["ASCEND_SIM_THREADS"] = "1"
    ms.set_device("CPU")
    title = f"base the core set-up, other the option; forward and backward, {args.tokens} tokens"
    medians["options"] = report(title, option_rounds(args.tokens, args.rounds))
    return medians


if __name__ == "__main__":
    core = main().get("core", {})
    sys.exit(int(core.get("all stages", 0.0) > MOST))
