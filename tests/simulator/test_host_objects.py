# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""ACL objects and the generated interface: names, signature rule, lifetimes."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from tests.support.aclnn import INVALID, NULLPTR, AclnnError
from tests.support.build_tree import ROOT


def c_declaration(op):
    return [f"{p['type']} {p['name']}" for p in op["c_params"]]


def test_signature_rule(test_ops):
    assert c_declaration(test_ops.ops["SimTestRowUpdate"]) == [
        "aclTensor * stateRef",
        "const aclTensor * x",
        "const aclTensor * biasOptional",
        "const aclIntArray * rowCountsOptional",
        "double aScale",
        "int64_t repeat",
        "bool negate",
        "char * modeOptional",
        "const aclIntArray * shiftsOptional",
        "const aclTensor * stateCopyOutOptional",
    ]
    assert c_declaration(test_ops.ops["SimTestMatmul"])[-1] == "const aclTensor * out"
    assert test_ops.ops["SimTestMatmul"]["kernel"] == "sim_test_matmul"


def test_only_the_c_interface_is_exported(test_ops):
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(test_ops.path)], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert {"aclnnSimTestMatmul", "aclCreateTensor", "ascendSimSetCores"} <= names
    assert [n for n in names if not n.startswith(("acl", "ascendSim"))] == []


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_generated_header_is_c(test_ops, tmp_path):
    generated = test_ops.path.parent / "test_opapi_sim_generated"
    source = tmp_path / "use.c"
    source.write_text(
        '#include "aclnn_ops.h"\nvoid* use(void) { return (void*)&aclnnSimTestMatmul; }\n'
    )
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{generated}",
         f"-I{ROOT}/simulator/include", str(source)],
        check=True,
    )  # fmt: skip


def dims(values):
    return (ctypes.c_int64 * len(values))(*values)


def create(lib, view, strides=None, offset=0, storage=None, dtype=0):
    storage = view if storage is None else storage
    made = lib.dll.aclCreateTensor(
        dims(view), ctypes.c_uint64(len(view)), ctypes.c_int(dtype),
        None if strides is None else dims(strides), ctypes.c_int64(offset), ctypes.c_int(2),
        dims(storage), ctypes.c_uint64(len(storage)), ctypes.c_void_p(64),
    )  # fmt: skip
    return ctypes.c_void_p(made) if made else None


def read(lib, getter, tensor):
    values, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
    assert getattr(lib.dll, getter)(tensor, ctypes.byref(values), ctypes.byref(count)) == 0
    return [values[i] for i in range(count.value)]


def test_tensor_getters(test_ops):
    tensor = create(test_ops, [2, 3], [8, 2], 1, [20], dtype=27)
    assert read(test_ops, "aclGetViewShape", tensor) == [2, 3]
    assert read(test_ops, "aclGetViewStrides", tensor) == [8, 2]
    assert read(test_ops, "aclGetStorageShape", tensor) == [20]
    offset, dtype = ctypes.c_int64(), ctypes.c_int()
    assert test_ops.dll.aclGetViewOffset(tensor, ctypes.byref(offset)) == 0
    assert test_ops.dll.aclGetDataType(tensor, ctypes.byref(dtype)) == 0
    assert (offset.value, dtype.value) == (1, 27)
    assert test_ops.dll.aclDestroyTensor(tensor) == 0
    assert test_ops.dll.aclDestroyTensor(tensor) == INVALID
    assert "destroyed or never created" in test_ops.last_error()
    assert test_ops.dll.aclDestroyTensor(None) == NULLPTR


def test_default_strides_are_contiguous(test_ops):
    tensor = create(test_ops, [2, 3, 4])
    assert read(test_ops, "aclGetViewStrides", tensor) == [12, 4, 1]
    test_ops.dll.aclDestroyTensor(tensor)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (dict(view=[2, -1]), "dimension -1"),
        (dict(view=[1] * 9), "9 dimensions, expected at most 8"),
        (dict(view=[1 << 40, 1 << 40]), "product fits 64 bits"),
        (dict(view=[2, 3], storage=[5]), "reaches element 5 of a storage of 5"),
        (dict(view=[2, 3], strides=[-3, 1]), "stride -3"),
        (dict(view=[2, 3], offset=-1), "offset is -1"),
        (dict(view=[2], dtype=13), "dataType 13 has no element size"),
    ],
)
def test_bad_tensors_are_refused(test_ops, arguments, text):
    assert create(test_ops, **arguments) is None
    assert text in test_ops.last_error()


def test_int_array(test_ops):
    array = ctypes.c_void_p(test_ops.dll.aclCreateIntArray(dims([3, 4]), ctypes.c_uint64(2)))
    size = ctypes.c_uint64()
    assert test_ops.dll.aclGetIntArraySize(array, ctypes.byref(size)) == 0
    assert size.value == 2
    assert test_ops.dll.aclDestroyIntArray(array) == 0
    assert test_ops.dll.aclGetIntArraySize(array, ctypes.byref(size)) == INVALID
    assert test_ops.dll.aclCreateIntArray(None, ctypes.c_uint64(2)) is None


def test_a_destroyed_tensor_is_not_read(test_ops):
    state = np.zeros((2, 8), np.float32)
    # Both are made first: a tensor made later could get the destroyed one's address.
    live, stale = test_ops.tensor(state), test_ops.tensor(state)
    test_ops.dll.aclDestroyTensor(stale)
    with pytest.raises(AclnnError, match="x is not a live object") as error:
        test_ops.call(
            "SimTestRowUpdate", state=live, x=stale, A_scale=1.0, outputs={"state_copy": None}
        )
    assert error.value.status == INVALID


def test_error_text_belongs_to_the_last_call(test_ops):
    assert create(test_ops, [-1]) is None
    assert test_ops.last_error()
    tensor = create(test_ops, [1])
    assert test_ops.last_error() == ""
    test_ops.dll.aclDestroyTensor(tensor)
