# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Finds the CMake build tree, and builds targets in it that the default build leaves out.

Tests run on the checked libraries; KDA_TEST_LIBRARY=plain takes the plain ones.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build_directory():
    """ASCEND_SIM_BUILD_DIR, else build/cmake (build.sh), else build (cmake by hand)."""
    candidates = [os.environ.get("ASCEND_SIM_BUILD_DIR"), ROOT / "build/cmake", ROOT / "build"]
    for candidate in candidates:
        if candidate and (Path(candidate) / "CMakeCache.txt").exists():
            return Path(candidate)
    raise FileNotFoundError(
        "no CMake build tree; make one with ./build.sh build, or: cmake -S . -B build -G Ninja"
    )


def tested(name):
    """The variant of a library that tests run on."""
    variants = {"checked": f"{name}_checked", "plain": name}
    choice = os.environ.get("KDA_TEST_LIBRARY") or "checked"
    if choice not in variants:
        raise ValueError(f"KDA_TEST_LIBRARY={choice}: one of {', '.join(variants)}")
    return variants[choice]


def library(name="kda_opapi_sim"):
    """Path of a built op library."""
    path = build_directory() / "simulator" / f"lib{name}.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not built: cmake --build {path.parents[1]} -t {name}")
    return path


def build(target):
    """Builds one target (nothing to do when it is fresh) and returns the library's path."""
    cmake = shutil.which("cmake") or str(Path(sys.executable).with_name("cmake"))
    command = [cmake, "--build", str(build_directory()), "--target", target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr}")
    return library(target)
