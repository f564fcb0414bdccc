# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Runs the cases of stages on one library, in a process of its own because a mutant may crash or
hang: python -m tests.mutation.runner [--record] LIBRARY FOLDER STAGE...

FOLDER has the stages' cases; --record stores their outputs there, otherwise they are compared with
the stored ones. One JSON line a case on standard output."""

import json
import pickle
import resource
import sys
from pathlib import Path

import numpy as np

from tests.support.aclnn import BF16, AclnnError, Library

CPU_SECONDS = 120  # all cases of all stages take a few seconds under the checker
# What an output may differ from the unmutated kernel's and still be called the same: what the stage
# tests allow against the reference.
LIMITS = {np.dtype(np.float32): 1e-4, BF16: 4e-3, np.dtype(np.float16): 5e-4}


def store(path, value):
    with open(path, "wb") as file:
        pickle.dump(value, file)


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def run_case(lib, case):
    with lib.cores(case.cores):
        return dict(lib.call(case.op, outputs=case.outputs, **case.arguments))


def difference(want, got):
    """What differs by more than rounding, or nothing."""
    for name, a in want.items():
        b = got[name]
        if a.tobytes() == b.tobytes():
            continue
        limit = LIMITS[a.dtype]
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        odd = int((np.isfinite(a) != np.isfinite(b)).sum())
        if odd:
            return f"{name}: {odd} values are finite in one and not in the other"
        error = np.linalg.norm((a - b)[finite]) / max(np.linalg.norm(a[finite]), 1e-30)
        if error > limit:
            return f"{name}: relative difference {error:.2g}"
    return ""


def check(lib, case, want):
    line = {"case": case.name, "report": "", "result": ""}
    try:
        line["result"] = difference(want, run_case(lib, case))
    except AclnnError as error:
        line["report"] = f"{error.function} returned {error.status}: {error.message}"
    except AssertionError as error:  # the guard bytes around an output
        line["result"] = str(error)
    return line


def main(record, library, folder, *stages):
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    lib = Library(library)
    lib.set_threads(1)
    folder = Path(folder)
    for stage in stages:
        cases = load(folder / f"{stage}.cases")
        if record:
            store(folder / f"{stage}.outputs", {case.name: run_case(lib, case) for case in cases})
            continue
        wanted = load(folder / f"{stage}.outputs")
        for case in cases:
            line = check(lib, case, wanted[case.name])
            print(json.dumps(line), flush=True)
            if line["report"]:
                return


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0] == "--record", *words[words[0] == "--record" :])
