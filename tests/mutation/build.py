# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Builds one mutant: one mutated kernel from a scratch copy, everything else as the build tree has
it."""

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation import sites
from tests.support import build_tree

HERE = Path(__file__).resolve().parent
KERNELS = build_tree.ROOT / "op_kernel"
CHECKED = "kda_opapi_sim_checked"


class BuildError(RuntimeError):
    """A compiler or linker refused; its output."""


def _run(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(done.stderr[-4000:] or done.stdout[-4000:])


@dataclass
class Builder:
    """The build tree's commands for one library, and where scratch trees go."""

    library: str
    scratch: Path
    keep: bool = False
    compile: dict = field(init=False)  # kernel file -> (arguments, object)
    link: list = field(init=False)
    baseline: Path = field(init=False)
    prefix: Path = field(init=False)  # what every mutated kernel includes first

    def __post_init__(self):
        self.directory = build_tree.build_directory()
        self.baseline = build_tree.build(self.library)
        self.scratch.mkdir(parents=True, exist_ok=True)
        self._read_commands()
        self._precompile()

    def _read_commands(self):
        ninja = shutil.which("ninja") or str(Path(sys.executable).with_name("ninja"))
        target = self.baseline.relative_to(self.directory).as_posix()
        listed = subprocess.run(
            [ninja, "-C", str(self.directory), "-t", "commands", target],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.compile, self.link = {}, []
        for line in listed.stdout.splitlines():
            words = shlex.split(line)
            if "-c" in words:
                source = Path(words[words.index("-c") + 1])
                if source.parent == KERNELS:
                    self.compile[source.name] = (words, words[words.index("-o") + 1])
            elif "-shared" in words and target in words:
                # ": && command && :"
                self.link = [w for w in words if w not in (":", "&&")]
        if not self.compile or not self.link:
            raise RuntimeError(f"no commands for {target} in {self.directory}")

    def units(self, mutant, sources):
        """Kernel files that the mutant is part of, the quickest to compile first."""
        units = sites.translation_units(sources, mutant.files)
        return sorted(
            units, key=lambda unit: (self.directory / self.compile[unit][1]).stat().st_size
        )

    def copy(self, mutant, sources, number):
        """A scratch tree with the mutant in it; remove() takes it away again."""
        folder = self.scratch / f"mutant{number}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(KERNELS, folder / "op_kernel")
        for name, text in mutant.texts(sources).items():
            (folder / "op_kernel" / name).write_text(text)
        return folder

    def build(self, folder, unit):
        """The library with one kernel from a scratch tree."""
        words, built = self.compile[unit]
        mutated, library = folder / f"{unit}.o", folder / f"lib{self.library}.so"
        command = self._command(words, folder / "op_kernel" / unit, mutated)
        # Reports name op_kernel/..., wherever the scratch tree is.
        command += [f"-fmacro-prefix-map={folder}/=", "-include", str(self.prefix)]
        _run(command, self.directory)
        # First of all objects: where others have the same inline function, the linker takes its.
        link = [word for word in self.link if word != built]
        output = link.index("-o") + 1
        link[output : output + 1] = [str(library), str(mutated)]
        _run(link, self.directory)
        return library

    def remove(self, number):
        if not self.keep:
            shutil.rmtree(self.scratch / f"mutant{number}", ignore_errors=True)

    def _precompile(self):
        """weaken.h and with it all of kernel_operator.h, parsed once."""
        self.prefix = self.scratch / "weaken.h"
        shutil.copy(HERE / "weaken.h", self.prefix)
        words, _ = next(iter(self.compile.values()))
        command = self._command(words, self.prefix, f"{self.prefix}.gch")
        command[command.index("-c")] = "-xc++-header"
        _run(command, self.directory)

    def _command(self, words, source, output):
        """No optimisation: compiling takes the time, kernels compute next to nothing themselves."""
        command = self._without_dependencies(words)
        command[command.index("-c") + 1] = str(source)
        command[command.index("-o") + 1] = str(output)
        return [*command, "-w", "-O0"]

    @staticmethod
    def _without_dependencies(words):
        """Without the options that write the build tree's dependency files."""
        out, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-MT", "-MF"):
                skip = True
            elif word != "-MD":
                out.append(word)
        return out


def lower_priority():
    """Mutants run for long: let everything else on the machine go first."""
    os.nice(5)
