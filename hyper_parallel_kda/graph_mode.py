# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""A clear error where MindSpore's graph compiler meets a public function."""

from mindspore.ops.primitive import PrimitiveWithInfer, prim_attr_register


class _RefuseGraphMode(PrimitiveWithInfer):
    """Nothing when called; the graph compiler, which infers it instead, gets the error."""

    @prim_attr_register
    def __init__(self, function):
        self.function = function

    def __call__(self):
        return None

    def __infer__(self, *args):
        raise RuntimeError(
            f"{self.function} runs in PyNative mode only: call it outside ms.jit and outside "
            "GRAPH_MODE cells, or use ms.jit(capture_mode='bytecode')"
        )


def refuse_graph_mode(function):
    """A callable for the first line of ``function``."""
    return _RefuseGraphMode(function)
