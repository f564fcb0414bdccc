# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The stage table says what the op definitions in op_host say."""

import importlib.util

import pytest

from hyper_parallel_kda import loader
from hyper_parallel_kda import stage_table as table
from tests.support.aclnn import Library

C_TYPE_KINDS = {
    "const aclTensor *": "t",
    "aclTensor *": "t",
    "const aclIntArray *": "a",
    "double": "d",
    "int64_t": "i",
    "bool": "b",
    "char *": "s",
}
DTYPES = {
    "io": {"BF16", "FLOAT16"},
    "fp32": {"FLOAT"},
    "io|fp32": {"BF16", "FLOAT16", "FLOAT"},
}


@pytest.fixture(scope="module")
def ops():
    return Library(loader.SIMULATOR_LIBRARY).ops


@pytest.fixture(scope="module")
def generator():
    path = loader.PACKAGE.parent / "bridge" / "generate_signatures.py"
    spec = importlib.util.spec_from_file_location("generate_signatures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_library_has_the_nine_ops_and_no_other(ops):
    assert set(ops) == {stage.op for stage in table.STAGES}


def all_dtypes(param):
    return set(param["dtypes"]) | set(param["dtype_list"])


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_inputs(ops, stage):
    defined = ops[stage.op]["inputs"]
    assert [param["name"] for param in defined] == [spec.name for spec in stage.inputs]
    for param, spec in zip(defined, stage.inputs, strict=True):
        if isinstance(spec, table.HostArraySpec):
            assert param["optional"] and param["value_depend"]
            assert all_dtypes(param) == {"INT64"}
        else:
            assert param["optional"] == spec.optional, spec.name
            assert not param["value_depend"]
            assert all_dtypes(param) == DTYPES[spec.dtype], spec.name


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_attributes(ops, stage):
    defined = ops[stage.op]["attrs"]
    assert [attr["name"] for attr in defined] == [attr.name for attr in stage.attrs]
    for attr, spec in zip(defined, stage.attrs, strict=True):
        assert attr["type"] == spec.kind, spec.name
        assert attr["required"] == (spec.default is table.REQUIRED), spec.name
        if spec.kind == "float" and not attr["required"]:
            assert attr["default"] == pytest.approx(spec.default, rel=1e-6), spec.name
        elif not attr["required"]:
            assert attr["default"] == spec.default, spec.name


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_outputs(ops, stage):
    defined = ops[stage.op]["outputs"]
    assert [param["name"] for param in defined] == [spec.name for spec in stage.outputs]
    for param, spec in zip(defined, stage.outputs, strict=True):
        dtype = stage.input(spec.dtype[1:]).dtype if spec.dtype[0] == "=" else spec.dtype
        assert param["optional"] == spec.optional, spec.name
        assert all_dtypes(param) == DTYPES[dtype], spec.name


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_c_signature(ops, generator, stage):
    kinds = "".join(C_TYPE_KINDS[param["type"]] for param in ops[stage.op]["c_params"])
    assert kinds == generator.kinds(table, stage)
    assert ops[stage.op]["kernel"] == stage.kernel
