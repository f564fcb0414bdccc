# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Each operator's own InferShape and InferDataType agree with the stage table.

CANN runs them when it builds a graph; an ACLNN call does not, so nothing else would notice.
"""

import numpy as np
import pytest

from hyper_parallel_kda import loader
from hyper_parallel_kda import stage_table as table
from tests.support.aclnn import BF16, Library

CASES = {
    "tail": {"B": 2, "T": 65, "Hk": 2, "Hv": 4, "R": 3},
    "one token": {"B": 1, "T": 1, "Hk": 1, "Hv": 1, "R": 1},
    "empty": {"B": 2, "T": 0, "Hk": 3, "Hv": 3, "R": 2},
}
DTYPES = {"io": BF16, "fp32": np.dtype(np.float32), "io|fp32": BF16}


@pytest.fixture(scope="module")
def library():
    return Library(loader.SIMULATOR_LIBRARY)


def sizes_of(case, stage):
    sizes = {"K": 128, "V": 128, "C": 64, **CASES[case]}
    if stage.name == "pre_process_bwd":
        sizes["B"] = 1
    return sizes | {"Nc": -(-sizes["T"] // 64), "N": sizes["B"]}


def values_of(stage, layout):
    values = {"scale": 1.0, "pre_or_post_num_ranks": 1, "rank": 0}
    return {
        spec.name: layout if spec.choices == table.LAYOUTS else values.get(spec.name, spec.default)
        for spec in stage.attrs
    }


def arguments_of(stage, sizes, values):
    arguments = dict(values)
    for spec in stage.inputs:
        if isinstance(spec, table.TensorSpec):
            arguments[spec.name] = np.zeros(
                table.output_shape(spec, values, sizes), DTYPES[spec.dtype]
            )
    return arguments


@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_outputs_are_those_of_the_table(library, stage, case, layout):
    sizes, values = sizes_of(case, stage), values_of(stage, layout)
    arguments = arguments_of(stage, sizes, values)
    inferred = library.infer(stage.op, **arguments)
    assert list(inferred) == [spec.name for spec in stage.outputs]
    for spec in stage.outputs:
        dtype = arguments[spec.dtype[1:]].dtype if spec.dtype[0] == "=" else DTYPES[spec.dtype]
        expected = (table.output_shape(spec, values, sizes), dtype)
        assert inferred[spec.name] == expected, spec.name


def test_the_gate_gradient_has_the_gates_dtype(library):
    stage = table.BWD_FINALIZE
    sizes, values = sizes_of("tail", stage), values_of(stage, "BSND")
    arguments = arguments_of(stage, sizes, values)
    arguments["raw_g"] = arguments["raw_g"].astype(np.float32)
    assert library.infer(stage.op, **arguments)["dg"][1] == np.float32
