# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Builds and runs mutants and says what became of each."""

import json
import random
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.mutation import build, cases, runner, sites
from tests.support import build_tree

WALL_SECONDS = 900  # far more than RLIMIT_CPU allows on an idle machine
OUTCOMES = ("report", "result", "no build", "survived")
SURVIVORS = build.HERE / "survivors.toml"


@dataclass(frozen=True)
class Outcome:
    mutant: sites.Mutant
    how: str  # one of OUTCOMES
    text: str

    @property
    def caught(self):
        """Program order hides what synchronisation is for: there only a report counts."""
        if self.mutant.kind in sites.SYNCHRONISATION:
            return self.how == "report"
        return self.how in ("report", "result")


def stage_of(unit):
    """The stage of a kernel file: chunk_kda_fwd_h.cpp is fwd_h."""
    return unit.removeprefix("chunk_kda_").removesuffix(".cpp")


class Campaign:
    def __init__(self, library=build.CHECKED, keep=False):
        """`library`: the CMake target to mutate."""
        self.sources = sites.load(build.KERNELS)
        self.mutants = sites.find(self.sources)
        folder = build_tree.build_directory() / "mutation"
        self.builder = build.Builder(library, folder, keep)
        self.folder = folder / self.builder.library
        self._prepare()

    def _prepare(self):
        """Cases and what the unmutated library makes of them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        by_stage = {}
        for case in cases.all_cases():
            by_stage.setdefault(case.stage, []).append(case)
        for stage, group in by_stage.items():
            runner.store(self.folder / f"{stage}.cases", group)
        done = self._runner(self.builder.baseline, sorted(by_stage), "--record")
        if done.returncode != 0:
            raise RuntimeError(f"the unmutated kernels fail:\n{done.stderr[-4000:]}")

    def _runner(self, library, stages, *options):
        command = [sys.executable, "-m", "tests.mutation.runner", *options, str(library)]
        return subprocess.run(
            [*command, str(self.folder), *stages],
            cwd=build_tree.ROOT, capture_output=True, text=True, timeout=WALL_SECONDS,
        )  # fmt: skip

    def judge(self, mutant, number=0):
        """Kernel by kernel until one catches it; a header's mutant may be in all of them."""
        worst = Outcome(mutant, "survived", "")
        try:
            folder = self.builder.copy(mutant, self.sources, number)
            for unit in self.builder.units(mutant, self.sources):
                outcome = self._judge_unit(mutant, folder, unit)
                if outcome.caught:
                    return outcome
                worst = min(worst, outcome, key=lambda o: OUTCOMES.index(o.how))
        except build.BuildError as error:
            return Outcome(mutant, "no build", str(error))
        finally:
            self.builder.remove(number)
        return worst

    def _judge_unit(self, mutant, folder, unit):
        library = self.builder.build(folder, unit)
        try:
            done = self._runner(library, [stage_of(unit)])
        except subprocess.TimeoutExpired:
            return Outcome(mutant, "result", f"{unit}: still running after {WALL_SECONDS} s")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for how in ("report", "result"):
            for line in lines:
                if line[how]:
                    return Outcome(mutant, how, f"{line['case']}: {line[how]}")
        if done.returncode > 0:  # an exception of the runner's own, which no mutant raises
            raise RuntimeError(f"{mutant}: the runner failed:\n{done.stderr[-4000:]}")
        if done.returncode != 0:
            text = f"{unit}: exit {done.returncode}: {done.stderr[-2000:]}"
            return Outcome(mutant, "result", text)
        return Outcome(mutant, "survived", "")

    def run(self, mutants, jobs=1, progress=None):
        def one(numbered):
            outcome = self.judge(numbered[1], numbered[0])
            if progress:
                progress(outcome)
            return outcome

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, enumerate(mutants)))

    def sample(self, count, seed):
        """At least one of every kind, the rest from anywhere."""
        chance = random.Random(seed)
        by_kind = {kind: [m for m in self.mutants if m.kind == kind] for kind in sites.KINDS}
        picked = [chance.choice(group) for group in by_kind.values()][:count]
        rest = [m for m in self.mutants if m not in picked]
        return picked + chance.sample(rest, count - len(picked))


def known_survivors(path=SURVIVORS):
    """{name: reason}."""
    with open(path, "rb") as file:
        listed = tomllib.load(file).get("survivor", [])
    known = {entry["mutant"]: entry["reason"].strip() for entry in listed}
    if len(known) != len(listed) or not all(known.values()):
        raise ValueError(f"{path}: a mutant is listed twice or without a reason")
    return known


def complaints(outcomes, known, every_name):
    """What is wrong with a run: survivors without a reason, reasons without a survivor."""
    wrong = []
    for outcome in outcomes:
        name = outcome.mutant.name
        if not outcome.caught and name not in known:
            wrong.append(f"{name}: {outcome.how}, and no reason in {SURVIVORS.name}")
        if outcome.caught and name in known:
            wrong.append(f"{name}: listed in {SURVIVORS.name} but caught by {outcome.how}")
    wrong += [f"{name}: listed but there is no such mutant" for name in known.keys() - every_name]
    return wrong


def table(outcomes):
    """kind, mutants, caught by report, caught by result, did not build, survived, share caught."""
    rows = [("kind", "mutants", "by report", "by result", "no build", "survived", "caught")]
    for kind in sites.KINDS:
        group = [o for o in outcomes if o.mutant.kind == kind]
        if not group:
            continue
        how = Counter(o.how for o in group)
        caught = sum(o.caught for o in group)
        share = f"{100 * caught / len(group):.1f} %"
        rows.append((kind, len(group), *(how[name] for name in OUTCOMES), share))
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join([f"{row[0]:<{widths[0]}}", *cells]))
    return "\n".join(lines)
