# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Checks that op_kernel and op_host are what CANN 8.1 accepts.

    tools/check_cann.py                      all of op_kernel/ and op_host/
    tools/check_cann.py --kernel F... --host F...

1. Text rules (tools/cann_rules.py): what g++ with CANN's CPU headers does not see.
2. Type-check with g++ against the toolkit at ASCEND_HOME_PATH (or --toolkit); its headers are
   enough, no NPU and no CANN library is needed. Kernels as C++17, once for the cube and once for
   the vector side; host files as C++11, in the three ways an op project compiles them. Without a
   toolkit this part is left out, and the last line says so.

Findings are printed as `file:line: rule: message`; the exit status is 1 when there is one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cann_rules import HOST_RULES, KERNEL_RULES, PAIR_RULES
from cpp_source import Source

ROOT = Path(__file__).resolve().parents[1]

# The op compiler writes these macros; a type-check supplies its own. ASCEND_IS_* get the form that
# they have on the NPU, so that `if (ASCEND_IS_AIC)` is an error here as it is there. The tiling
# data are a constant when the op compiler knows the shapes, else a variable: each is tried once.
KERNEL_SHIM = """\
#undef REGISTER_TILING_DEFAULT
#define REGISTER_TILING_DEFAULT(type) static_assert(sizeof(type) % 8 == 0, "tiling struct size")
#undef GET_TILING_DATA_WITH_STRUCT
#define GET_TILING_DATA_WITH_STRUCT(type, name, pointer) \\
    CHECK_CANN_CONST type name = type();                 \\
    (void)(pointer)
#undef ASCEND_IS_AIC
#undef ASCEND_IS_AIV
#define ASCEND_IS_AIC constexpr(CHECK_CANN_CUBE_SIDE == 1)
#define ASCEND_IS_AIV constexpr(CHECK_CANN_CUBE_SIDE == 0)
"""

# An op project compiles op_host into three libraries: op definitions, tiling, inference.
HOST_VARIANTS = {"definition": [], "tiling": ["-DOP_TILING_LIB"], "proto": ["-DOP_PROTO_LIB"]}


@dataclass(frozen=True)
class Finding:
    path: Path
    line: int
    rule: str
    message: str

    def __str__(self):
        path = self.path
        if path.is_absolute() and path.is_relative_to(ROOT):
            path = path.relative_to(ROOT)
        return f"{path}:{self.line}: {self.rule}: {self.message}"


class Toolkit:
    """Include folders of an installed (or merely unpacked) CANN toolkit."""

    def __init__(self, home):
        self.home = Path(home)
        archs = [self.home / f"{arch}-linux" for arch in ("x86_64", "aarch64")]
        self.arch = next((a for a in archs if (a / "ascendc/include").is_dir()), None)

    def problem(self):
        """Why the type-check cannot run, or None."""
        if self.arch is None:
            return f"no x86_64-linux or aarch64-linux folder with ascendc/include in {self.home}"
        missing = [p for p in self.kernel_includes() + self.host_includes() if not p.is_dir()]
        return f"{missing[0]} is missing" if missing else None

    def kernel_includes(self):
        api = self.arch / "ascendc/include"
        basic, high = api / "basic_api", api / "highlevel_api"
        return [
            self.home / "tools/tikicpulib/lib/include", self.arch / "include",
            basic, basic / "impl", basic / "interface",
            high, high / "lib", high / "impl", high / "lib/matmul", api,
        ]  # fmt: skip

    def host_includes(self):
        return [self.arch / "include", self.arch / "ascendc/include/highlevel_api"]

    def kernel_header(self):
        return self.arch / "ascendc/include/basic_api/kernel_operator.h"

    def kernel_flags(self):
        return [
            "-std=c++17", "-D__CCE_AICORE__=220", "-D__DAV_C220__", "-D__CCE_KT_TEST__=1",
            "-DASCENDC_CPU_DEBUG=1", "-D_GLIBCXX_USE_CXX11_ABI=0",
            *_system(self.kernel_includes()),
        ]  # fmt: skip

    def host_header(self):
        return self.arch / "include/register/op_def_registry.h"

    def host_flags(self, define):
        flags = ["-std=c++11", "-Wall", "-D_GLIBCXX_USE_CXX11_ABI=0"]
        return [*flags, *define, *_system(self.host_includes())]


class Compiler:
    """g++ -fsyntax-only with one toolkit header precompiled: parsing it takes most of the time."""

    def __init__(self, folder, name, header, flags):
        self.flags = flags
        self.prefix = Path(folder) / f"{name}.h"
        self.prefix.write_text(f'#include "{header}"\n')
        self.program = os.environ.get("CXX") or shutil.which("g++") or "c++"
        command = [self.program, *flags, "-x", "c++-header", str(self.prefix)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{header} does not compile:\n{done.stderr[-2000:]}")

    def check(self, path, *shims):
        includes = [part for file in (self.prefix, *shims) for part in ("-include", str(file))]
        command = [self.program, *self.flags, "-fsyntax-only", "-x", "c++", *includes, str(path)]
        return _findings(path, subprocess.run(command, capture_output=True, text=True))


def _system(folders):
    return [part for folder in folders for part in ("-isystem", str(folder))]


def text_findings(kernels, hosts):
    sources = {path: Source(path) for path in [*kernels, *hosts]}
    for path in kernels:
        yield from _apply(KERNEL_RULES, sources[path], sources[path])
    for path in hosts:
        yield from _apply(HOST_RULES, sources[path], sources[path])
    by_stem = {path.stem: path for path in hosts if path.suffix == ".cpp"}
    for path in kernels:
        if path.suffix == ".cpp" and path.stem in by_stem:
            yield from _apply(PAIR_RULES, sources[path], sources[path], sources[by_stem[path.stem]])


def _apply(rules, source, *arguments):
    for name, rule in rules.items():
        for line, message in rule(*arguments):
            yield Finding(source.path, line, name, message)


def type_findings(toolkit, kernels, hosts, jobs):
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        work = []
        if kernels:
            header, flags = toolkit.kernel_header(), toolkit.kernel_flags()
            compiler = Compiler(folder, "kernel_prefix", header, flags)
            for side in (1, 0):
                shim = Path(folder) / f"kernel_shim_{side}.h"
                constant = "const" if side else ""
                defines = (
                    f"#define CHECK_CANN_CUBE_SIDE {side}\n#define CHECK_CANN_CONST {constant}\n"
                )
                shim.write_text(defines + KERNEL_SHIM)
                work += [pool.submit(compiler.check, path, shim) for path in kernels]
        for name, define in HOST_VARIANTS.items() if hosts else ():
            flags = toolkit.host_flags(define)
            compiler = Compiler(folder, f"host_{name}", toolkit.host_header(), flags)
            work += [pool.submit(compiler.check, path) for path in hosts]
        found = [finding for item in work for finding in item.result()]
    return list(dict.fromkeys(found))


def _findings(path, done):
    if done.returncode == 0:
        return []
    errors = re.findall(r"^(.+?):(\d+):\d+: (?:fatal )?error: (.*)$", done.stderr, re.MULTILINE)
    if not errors:
        return [Finding(path, 1, "type-check", done.stderr.strip()[-500:])]
    # An error inside a macro is reported at its definition, too: only the file's own line helps.
    own = [error for error in errors if "_shim_" not in error[0]] or errors
    return [Finding(Path(file), int(line), "type-check", text) for file, line, text in own]


def _default_files():
    kernels = sorted((ROOT / "op_kernel").rglob("*.cpp")) + sorted(
        (ROOT / "op_kernel").rglob("*.h")
    )
    hosts = sorted((ROOT / "op_host").rglob("*.cpp")) + sorted((ROOT / "op_host").rglob("*.h"))
    return kernels, hosts


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kernel", nargs="*", type=Path, help="kernel files and headers")
    parser.add_argument("--host", nargs="*", type=Path, help="op_host files")
    parser.add_argument("--toolkit", default=os.environ.get("ASCEND_HOME_PATH"))
    parser.add_argument("--no-type-check", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if options.kernel is None and options.host is None:
        kernels, hosts = _default_files()
    else:
        kernels, hosts = options.kernel or [], options.host or []
    findings = list(text_findings(kernels, hosts))
    note = _left_out(options)
    sources = [[p for p in files if p.suffix == ".cpp"] for files in (kernels, hosts)]
    if note is None:
        findings += type_findings(Toolkit(options.toolkit), *sources, options.jobs)
    for finding in sorted(findings, key=lambda f: (str(f.path), f.line, f.rule)):
        print(finding)
    done = (
        f"type-checked against {options.toolkit}" if note is None else f"NOT type-checked: {note}"
    )
    print(
        f"check_cann: {len(kernels)} kernel and {len(hosts)} host files, "
        f"{len(findings)} findings; {done}"
    )
    return 1 if findings else 0


def _left_out(options):
    if options.no_type_check:
        return "--no-type-check"
    if not options.toolkit:
        return "no toolkit (ASCEND_HOME_PATH is not set)"
    return Toolkit(options.toolkit).problem()


if __name__ == "__main__":
    sys.exit(main())
