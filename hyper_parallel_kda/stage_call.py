# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""From checked arguments to one call of the bridge."""

import contextlib
import threading

from . import loader
from .checks import check_stage, dtype_name, host_arrays
from .stage_table import TensorSpec, is_present, output_shape

_thread = threading.local()


@contextlib.contextmanager
def launches_together():
    """Stages called inside queue up behind each other, and the exit waits for all of them.

    So Python prepares a stage while the one before it runs. Only stages may take a result before
    the exit: MindSpore's own ops overtake the launches. On an NPU nothing waits anyway.
    """
    before = getattr(_thread, "together", False)
    _thread.together = True
    try:
        yield
    except BaseException:
        # A later call must not get the failure of one of these launches.
        with contextlib.suppress(Exception):
            loader.bridge().wait_for_launches()
        raise
    else:
        loader.bridge().wait_for_launches()
    finally:
        _thread.together = before


def _output_dtype(spec, values, checker):
    if spec.dtype == "fp32":
        return "float32"
    if spec.wide is not None and spec.wide(values):
        return "float32"
    if spec.dtype.startswith("="):
        return dtype_name(values[spec.dtype[1:]].dtype)
    return dtype_name(checker.io[0])


def run_stage(stage, values, function=None):
    """Checks, calls the stage and returns its outputs in the table's order, None where absent.

    ``values`` holds every input and attribute of the stage by name, and whatever else decides which
    optional outputs are wanted.
    """
    values, checker = check_stage(stage, values, function)
    inputs = [values[spec.name] for spec in stage.inputs if isinstance(spec, TensorSpec)]
    attributes = [values[attr.name] for attr in stage.attrs]
    arrays = host_arrays(stage, values)
    if stage.in_place is not None:
        position = [spec.name for spec in stage.inputs].index(stage.in_place)
        _call(stage, inputs, arrays, attributes, [None] * len(stage.outputs), position)
        return (inputs[position],)
    sizes = checker.numbers()
    outputs = [
        (
            _output_dtype(spec, values, checker),
            list(output_shape(spec, values, sizes, checker.rank3)),
        )
        if is_present(spec, values)
        else None
        for spec in stage.outputs
    ]
    results = _call(stage, inputs, arrays, attributes, outputs, -1)
    present = iter(results if isinstance(results, tuple) else (results,))
    return tuple(None if spec is None else next(present) for spec in outputs)


def _call(stage, inputs, arrays, attributes, outputs, in_place):
    bridge = loader.bridge()
    path, on_ascend = loader.choose_library()
    results = bridge.call_stage(
        path, stage.op, inputs, arrays, attributes, outputs, in_place, not on_ascend
    )
    if not getattr(_thread, "together", False):
        bridge.wait_for_launches()
    return results
