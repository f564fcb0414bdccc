# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Every stage under seeded orders of its cores, on several threads: the bits of the plain order.

The order is the subject here, so most runs are the plain library's; a few under the checks show
that these find nothing in other orders either.
"""

import os

import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages.stage_runs import bits
from tests.support import build_tree
from tests.support.aclnn import Library
from tests.support.stage_calls import complete_call

STAGES = pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
PACKED = pytest.mark.parametrize(
    "stage",
    [stage for stage in table.STAGES if any(spec.name == "cu_seqlens" for spec in stage.inputs)],
    ids=lambda stage: stage.name,
)
SEEDS = (1, 2, 3, 4, 5)
THREADS = (1, 2, 3)


@pytest.fixture(scope="module")
def plain():
    return Library(os.environ.get("HYPER_PARALLEL_KDA_OPAPI") or build_tree.library())


@pytest.fixture(scope="module")
def checked():
    return Library(build_tree.build("kda_opapi_sim_checked"))


def assert_order_does_not_matter(lib, stage, seeds=SEEDS, threads=THREADS, **sizes):
    arguments, outputs = complete_call(stage, **sizes)

    def run():
        return bits(lib.call(stage.op, outputs=outputs, **arguments))

    want = run()
    for seed in seeds:
        for count in threads:
            with lib.schedule(seed), lib.threads(count):
                got = run()
            for name in want:
                assert got[name] == want[name], (
                    f"{stage.name} {sizes}: {name} differs under schedule {seed}, {count} threads"
                )


# Blocks with one chunk or less, blocks that go through many, more and fewer blocks than threads.
@STAGES
@pytest.mark.parametrize("tokens", [1, 2, 15, 16, 17, 63, 64, 65, 100, 127, 128, 129])
def test_dense_tails(plain, stage, tokens):
    with plain.cores(3):
        assert_order_does_not_matter(plain, stage, tokens=tokens)


@STAGES
@pytest.mark.parametrize("cores", [1, 5, 24])
def test_many_heads_and_chunks(plain, stage, cores):
    heads = {"key_heads": 5, "value_heads": 5}
    with plain.cores(cores):
        assert_order_does_not_matter(plain, stage, batch=2, tokens=333, **heads)


# Blocks whose sequences and chunks are as unequal as can be.
@PACKED
@pytest.mark.parametrize("cores", [1, 5])
def test_packed_sequences(plain, checked, stage, cores):
    sizes = dict(cu_seqlens=[0, 70, 70, 75, 140, 141, 400], layout="TND")
    for lib in (plain, checked):
        seeds = SEEDS if lib is plain else SEEDS[:2]
        with lib.cores(cores):
            assert_order_does_not_matter(lib, stage, seeds=seeds, threads=(1, 3), **sizes)


@STAGES
def test_under_the_checks(checked, stage):
    with checked.cores(3):
        assert_order_does_not_matter(checked, stage, seeds=SEEDS[:2], threads=(1, 2), tokens=129)
