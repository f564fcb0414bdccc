# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The cost benchmark runs every stage in every library that it is given. Times are not judged."""

import pytest

from benchmarks import bench_checker
from hyper_parallel_kda import stage_table as table
from tests.support import build_tree


@pytest.mark.parametrize("threads", [1, 2])
def test_the_table_has_every_stage(capsys, tmp_path, threads):
    plain = build_tree.build("kda_opapi_sim")
    other = tmp_path / "other.so"
    other.write_bytes(plain.read_bytes())
    checked = build_tree.build("kda_opapi_sim_checked")
    options = ["--plain", plain, "--checked", checked, "--against", other, "--threads", threads]
    options += ["--tokens", 17, "--heads", 1, "--rounds", 2]
    medians = bench_checker.main([str(option) for option in options])
    rows = [*[stage.name for stage in table.STAGES], "all stages"]
    assert list(medians) == ["plain", "checked"]
    for ratios in medians.values():
        assert list(ratios) == rows and all(ratio > 0 for ratio in ratios.values())
    printed = capsys.readouterr().out
    assert all(printed.count(f"| {row} |") == 2 for row in rows)
