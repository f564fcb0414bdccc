# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Builds one mutant: the mutated translation units from a scratch copy of the kernels, everything
else as the build tree has it."""

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
PLAIN = "kda_opapi_sim"
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

    def __post_init__(self):
        self.directory = build_tree.build_directory()
        self.baseline = build_tree.build(self.library)
        self.scratch.mkdir(parents=True, exist_ok=True)
        self._read_commands()

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

    def build(self, mutant, sources, number):
        """Path of the mutant's library; remove() takes it away again."""
        folder = self.scratch / f"mutant{number}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(KERNELS, folder / "op_kernel")
        for name, text in mutant.texts(sources).items():
            (folder / "op_kernel" / name).write_text(text)
        replaced = {}
        for unit in sites.translation_units(sources, mutant.files):
            words, built = self.compile[unit]
            mutated = folder / f"{unit}.o"
            command = self._without_dependencies(words)
            command[command.index("-c") + 1] = str(folder / "op_kernel" / unit)
            command[command.index("-o") + 1] = str(mutated)
            # Reports name op_kernel/..., wherever the scratch tree is. No optimisation: compiling
            # takes the time, kernels compute next to nothing themselves.
            command += [f"-fmacro-prefix-map={folder}/=", "-w", "-O0"]
            if mutant.weakened:
                command += ["-include", str(HERE / "weaken.h")]
            _run(command, self.directory)
            replaced[built] = str(mutated)
        library = folder / f"lib{self.library}.so"
        link = [replaced.get(word, word) for word in self.link]
        link[link.index("-o") + 1] = str(library)
        _run(link, self.directory)
        return library

    def remove(self, number):
        if not self.keep:
            shutil.rmtree(self.scratch / f"mutant{number}", ignore_errors=True)

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
