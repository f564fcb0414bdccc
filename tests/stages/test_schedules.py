# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Every stage under seeded orders of its cores, on several threads: the bits of the plain order."""

import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages.stage_runs import bits
from tests.support.stage_calls import complete_call

STAGES = pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
SEEDS = (1, 2, 3, 4, 5)
THREADS = (1, 2, 3)


def assert_order_does_not_matter(lib, stage, **sizes):
    arguments, outputs = complete_call(stage, **sizes)

    def run():
        return bits(lib.call(stage.op, outputs=outputs, **arguments))

    want = run()
    for seed in SEEDS:
        for threads in THREADS:
            with lib.schedule(seed), lib.threads(threads):
                got = run()
            for name in want:
                assert got[name] == want[name], (
                    f"{stage.name} {sizes}: {name} differs under schedule {seed}, {threads} threads"
                )


# Blocks with one chunk or less, blocks that go through many, more and fewer blocks than threads.
@STAGES
@pytest.mark.parametrize("tokens", [1, 2, 15, 16, 17, 63, 64, 65, 100, 127, 128, 129])
def test_dense_tails(lib, stage, tokens):
    with lib.cores(3):
        assert_order_does_not_matter(lib, stage, tokens=tokens)


@STAGES
@pytest.mark.parametrize("cores", [1, 5, 24])
def test_many_heads_and_chunks(lib, stage, cores):
    heads = {"key_heads": 5, "value_heads": 5}
    with lib.cores(cores):
        assert_order_does_not_matter(lib, stage, batch=2, tokens=333, **heads)
