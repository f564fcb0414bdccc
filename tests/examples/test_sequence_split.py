# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The demonstration runs, and the plan that it rests on: who holds what."""

import itertools

import pytest

from tests.support import split_runs

split = split_runs.sequence_split.split


def test_demo_passes_and_reports_every_result(capsys):
    demo = split_runs._load("demo")
    assert demo.main(["--tokens", "150", "--heads", "1", "--ranks", "3"]) == 0
    text = capsys.readouterr().out
    for name in ("output", "final_state", *demo.GRADS.values()):
        assert f"| {name}" in text


def test_demo_fails_when_a_result_is_off(capsys, monkeypatch):
    demo = split_runs._load("demo")
    monkeypatch.setattr(demo, "LIMIT", 1e-9)
    assert demo.main(["--tokens", "150", "--heads", "1", "--ranks", "3"]) == 1
    assert "FAILED" in capsys.readouterr().out


def bounds(total, inner):
    """Every non-decreasing list from 0 to total with that many inner entries."""
    for points in itertools.combinations_with_replacement(range(total + 1), inner):
        yield [0, *points, total]


@pytest.mark.parametrize("total", [0, 1, 4])
def test_every_plan_of_small_batches(total):
    """Each token lies in one piece of its own sequence; each sequence is somewhere; the ranks that
    share a sequence are neighbours, which hold it first or last, as the summaries need."""
    for cu_seqlens, cuts in itertools.product(bounds(total, 2), bounds(total, 3)):
        parts = split(cu_seqlens, cuts)
        title = f"cu_seqlens {cu_seqlens}, cuts {cuts}: {parts}"
        tokens = [
            (sequence, token)
            for part in parts
            for sequence, start, stop in part.pieces
            for token in range(start, stop)
        ]
        assert tokens == [
            (n, t) for n in range(3) for t in range(cu_seqlens[n], cu_seqlens[n + 1])
        ], title
        for part in parts:
            assert part.pieces and part.sequences == sorted(set(part.sequences)), title
            assert part.cu_seqlens[-1] == part.stop - part.start, title
        for sequence in range(3):
            holders = [r for r, part in enumerate(parts) if sequence in part.sequences]
            assert holders and holders == list(range(holders[0], holders[-1] + 1)), title
            for place, rank in enumerate(holders):
                part = parts[rank]
                if rank > holders[0]:
                    assert part.sequences[0] == sequence and part.before == place, title
                if rank < holders[-1]:
                    last = len(holders) - 1 - place
                    assert part.sequences[-1] == sequence and part.after == last, title
            if len(holders) == 1:
                part = parts[holders[0]]
                assert part.before == 0 or part.sequences[0] != sequence, title
                assert part.after == 0 or part.sequences[-1] != sequence, title
