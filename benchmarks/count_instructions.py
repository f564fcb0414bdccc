# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What each stage issues for one chunk of one head: MACs, vector and scalar instructions.

    python -m benchmarks.count_instructions [--heads 4] [--tokens 1024]

The simulator counts them as the kernels run. tests/stages holds every stage to its formula and to
bounds; this prints the figures. Averages over a launch: a scan's first and last chunk may skip a
product, and masks are made once a core.
"""

import argparse
import ctypes
import json

from benchmarks.bench_stages import Kernels
from tests.support import inputs

CHUNK = 64
SOLVE = "1"  # the TRACE region of the triangular solve
GATED = ("fwd_prepare", "bwd_finalize")  # stages that do other work under other gates


def counters(library, call):
    library.ascendSimReadCounters.restype = ctypes.c_size_t
    library.ascendSimReadCounters.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    library.ascendSimResetCounters()
    call()
    size = library.ascendSimReadCounters(None, 0)
    text = ctypes.create_string_buffer(size + 1)
    library.ascendSimReadCounters(text, size + 1)
    (kernel,) = json.loads(text.value).values()
    return kernel


def row(title, counts, units):
    solve = counts["regions"].get(SOLVE, {"vector_instructions": 0, "vector_repeats": 0})
    vectors = counts["vector_instructions"] - solve["vector_instructions"]
    repeats = counts["vector_repeats"] - solve["vector_repeats"]
    mean = f"{repeats / vectors:.1f}" if vectors else "-"
    in_solve = solve["vector_instructions"] / units
    scalars = (counts["scalar_reads"] + counts["scalar_writes"]) / units
    return (
        f"| {title} | {counts['mmad_macs'] / units:,.0f} | {vectors / units:.1f} | {mean} "
        f"| {in_solve:.1f} | {scalars:.1f} |"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024)
    args = parser.parse_args(arguments)
    from hyper_parallel_kda import loader

    library = ctypes.CDLL(loader.op_library_path())
    chunk_heads = args.heads * -(-args.tokens // CHUNK)
    print(f"B=1 H={args.heads} T={args.tokens}, a chunk-head (merge: a head and rank)\n")
    print("| stage | MACs | vector instructions | mean repeats | in the solve | scalar accesses |")
    print("|---|---|---|---|---|---|")
    for gate in inputs.GATES:
        x = inputs.make_inputs(
            0, 1, args.tokens, args.heads, gate=gate, decay="medium", initial_state=True
        )
        for name, call in Kernels(x).stages.items():
            if gate == "safe" or name in GATED:
                units = args.heads if name == "merge_fwd_bwd" else chunk_heads
                title = name if gate == "safe" else f"{name}, {gate} gate"
                print(row(title, counters(library, call), units))


if __name__ == "__main__":
    main()
