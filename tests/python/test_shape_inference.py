# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Each operator's own InferShape and InferDataType agree with the stage table.

CANN runs them when it builds a graph; an ACLNN call does not, so nothing else would notice.
"""

import numpy as np
import pytest

from hyper_parallel_kda import loader
from hyper_parallel_kda import stage_table as table
from tests.support import stage_calls
from tests.support.aclnn import Library

CASES = {
    "tail": {"batch": 2, "tokens": 65, "key_heads": 2, "value_heads": 4, "ranks": 3},
    "one token": {"tokens": 1, "key_heads": 1, "value_heads": 1, "ranks": 1},
    "empty": {"batch": 2, "tokens": 0, "key_heads": 3, "value_heads": 3},
    "packed": {"key_heads": 1, "value_heads": 2, "cu_seqlens": [0, 5, 5, 70, 199]},
    "packed, empty": {"cu_seqlens": [0, 0, 0]},
}


@pytest.fixture(scope="module")
def library():
    return Library(loader.SIMULATOR_LIBRARY)


@pytest.mark.parametrize("layout", table.LAYOUTS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_outputs_are_those_of_the_table(library, stage, case, layout):
    rank3 = layout in table.RANK3_LAYOUTS
    dims = stage_calls.sizes(stage, **{**CASES[case], **({"batch": 1} if rank3 else {})})
    cu_seqlens = CASES[case].get("cu_seqlens")
    values = {**stage_calls.attributes(stage, layout), **stage_calls.packing(stage, cu_seqlens)}
    arrays = stage_calls.tensors(stage, dims, values, rank3=rank3)
    inferred = library.infer(stage.op, **values, **arrays)
    assert list(inferred) == [spec.name for spec in stage.outputs]
    for name, expected in stage_calls.outputs(stage, dims, values, arrays, rank3).items():
        assert inferred[name] == expected, name


def test_the_gate_gradient_has_the_gates_dtype(library):
    stage = table.BWD_FINALIZE
    values = stage_calls.attributes(stage, "BSND")
    arrays = stage_calls.tensors(stage, stage_calls.sizes(stage), values)
    arrays["raw_g"] = arrays["raw_g"].astype(np.float32)
    assert library.infer(stage.op, **values, **arrays)["dg"][1] == np.float32


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_absent_outputs_are_left_alone(library, stage):
    """What the caller leaves out has no shape object; the other outputs stay what they are."""
    definitions = library.ops[stage.op]["outputs"]
    optional = [output["name"] for output in definitions if output["optional"]]
    values = stage_calls.attributes(stage)
    arrays = stage_calls.tensors(stage, stage_calls.sizes(stage), values)
    whole = library.infer(stage.op, **values, **arrays)
    for absent in [*([name] for name in optional), optional]:
        left = library.infer(stage.op, absent=absent, **values, **arrays)
        assert left == {name: whole[name] for name in whole if name not in absent}


def test_four_stages_have_optional_outputs(library):
    with_optional = {
        stage.name
        for stage in table.STAGES
        if any(output["optional"] for output in library.ops[stage.op]["outputs"])
    }
    assert with_optional == {"fwd_prepare", "fwd_h", "bwd_dhu", "bwd_finalize"}
