# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Builds the simulator library and the MindSpore bridge with CMake into the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    """One CMake project makes everything native, so there is one pseudo extension."""

    def run(self):
        build_dir = Path(os.environ.get("KDA_CMAKE_BUILD_DIR") or Path(self.build_temp).resolve())
        prefix = ROOT if self.inplace else Path(self.build_lib).resolve()
        configure = ["cmake", "-S", str(ROOT), "-B", str(build_dir), "-DKDA_BUILD_BRIDGE=ON"]
        configure.append(f"-DPython_EXECUTABLE={sys.executable}")
        if shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        jobs = os.environ.get("KDA_JOBS") or str(os.cpu_count() or 1)
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", str(build_dir), "--parallel", jobs], check=True)
        install = ["cmake", "--install", str(build_dir), "--component", "python"]
        subprocess.run([*install, "--prefix", str(prefix)], check=True)

    def get_outputs(self):
        return []

    def get_source_files(self):
        return []


setup(
    ext_modules=[Extension("hyper_parallel_kda._bridge", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
