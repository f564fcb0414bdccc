# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Calls of the public Python functions, made from the arguments of the ops behind them."""

import mindspore as ms
import numpy as np

import hyper_parallel_kda as kda
from tests.support.aclnn import BF16
from tests.support.stage_calls import complete_call

_MS_DTYPES = {
    BF16: ms.bfloat16,
    np.dtype(np.float32): ms.float32,
    np.dtype(np.float16): ms.float16,
    np.dtype(np.int32): ms.int32,
}


def tensor(array):
    """A MindSpore tensor with the array's values and dtype."""
    if array.dtype == BF16:
        return ms.Tensor(np.ascontiguousarray(array.astype(np.float32))).astype(ms.bfloat16)
    return ms.Tensor(np.ascontiguousarray(array), _MS_DTYPES[array.dtype])


def to_python(arguments):
    """The op's arguments as those of the Python function."""
    return {
        name: tensor(value) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }


def good_call(stage, **sizes):
    """(function, arguments) of a stage's Python function that must succeed."""
    arguments, _ = complete_call(stage, **sizes)
    return getattr(kda, stage.function), to_python(arguments)
