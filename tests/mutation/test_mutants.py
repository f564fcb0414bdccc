# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Twelve mutants, every kind among them, and that the machinery tells their fates apart."""

import numpy as np
import pytest

from tests.mutation import build, campaign, cases, runner, sites
from tests.support import inputs

SAMPLE = 12
SMALL = "chunk_kda_fwd_finalize.cpp"  # the fastest to compile


@pytest.fixture(scope="module")
def run():
    return campaign.Campaign()


def test_sampled_mutants_are_caught(run):
    seed = inputs.fresh_seed()
    print(f"python -m tests.mutation --sample {SAMPLE} --seed {seed}")
    mutants = run.sample(SAMPLE, seed)
    assert {m.kind for m in mutants} == set(sites.KINDS)
    outcomes = run.run(mutants, jobs=2)
    print(campaign.table(outcomes))
    known = campaign.known_survivors()
    wrong = campaign.complaints(outcomes, known, {m.name for m in run.mutants})
    assert not wrong, "\n".join(wrong)


def test_every_case_covers_its_stage_and_every_stage_has_cases():
    stages = {campaign.stage_of(p.name) for p in build.KERNELS.glob("*.cpp")}
    assert {case.stage for case in cases.all_cases()} == stages


def edited(run, old, new, kind="offset"):
    source = run.sources[SMALL]
    start = source.text.index(old)
    edits = ((SMALL, start, start + len(old), new),)
    return sites.Mutant(kind, f"{old} -> {new}", SMALL, source.line(start), edits)


def test_fates(run):
    """One mutant of each fate, and what counts as caught."""
    call = "l0_.Multiply(c, a, b, rows, kValueDim, rows, true)"
    expected = {
        "survived": edited(run, "int64_t task = ", "int64_t task = 0 + "),
        "no build": edited(run, "int64_t task = ", "int64_t task == "),
        "result": edited(run, call, call.replace("true", "false")),
        "report": edited(run, "LoadB(b, right, ", "LoadB(b, right[1 << 20], "),
    }
    got = dict(zip(expected, run.run(list(expected.values()), jobs=2)))
    assert {name: outcome.how for name, outcome in got.items()} == {n: n for n in expected}
    assert "relative difference" in got["result"].text
    assert "LoadData" in got["report"].text and "cube.h" in got["report"].text
    assert [got[name].caught for name in expected] == [False, False, True, True]
    unseen = campaign.Outcome(edited(run, "{", "{", kind="flag"), "result", "")
    assert not unseen.caught  # for synchronisation a wrong result is luck


def test_a_crash_is_a_result_and_the_scratch_tree_goes(run):
    crash = edited(run, "int64_t task = ", "*(volatile int*)1 = 0; int64_t task = ")
    outcome = run.judge(crash, number=99)
    assert outcome.how == "result" and "exit -" in outcome.text
    assert not (run.builder.scratch / "mutant99").exists()


def test_complaints_and_table(run):
    a, b = run.mutants[:2]
    survived, caught = campaign.Outcome(a, "survived", ""), campaign.Outcome(b, "report", "")
    names = {a.name, b.name}
    assert campaign.complaints([survived, caught], {a.name: "why"}, names) == []
    (wrong,) = campaign.complaints([survived, caught], {}, names)
    assert a.name in wrong and "no reason" in wrong
    wrong = campaign.complaints([caught], {b.name: "why", "gone": "why"}, names)
    assert ["but caught" in wrong[0], "no such mutant" in wrong[1]] == [True, True]
    assert campaign.table([survived, caught]).splitlines()[1].split()[-2:] == ["50.0", "%"]


def test_outputs_are_compared_within_rounding():
    want = {"x": np.arange(1.0, 5.0, dtype=np.float32)}
    assert runner.difference(want, {"x": want["x"] * np.float32(1 + 1e-6)}) == ""
    assert "relative" in runner.difference(want, {"x": want["x"] * np.float32(1.001)})
    spoiled = want["x"].copy()
    spoiled[2] = np.nan
    assert "finite" in runner.difference(want, {"x": spoiled})
