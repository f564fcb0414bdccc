# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The graph compiler meets every public function with an error, before anything runs."""

import mindspore as ms
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import stage_table as table
from tests.support.public_calls import good_call


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """What reaches the bridge. MindSpore writes its analysis of a failure to the folder."""
    from hyper_parallel_kda import stage_call

    monkeypatch.chdir(tmp_path)
    seen = []
    original = stage_call._call
    monkeypatch.setattr(stage_call, "_call", lambda *a: seen.append(a[0].name) or original(*a))
    return seen


def op_call(make_inputs):
    x = make_inputs(batch=1, heads=2, tokens=17)
    return kda.npu_chunk_kda, x.arguments()


@pytest.mark.parametrize("stage", [None, *table.STAGES], ids=lambda s: s.name if s else "chunk_kda")
def test_default_jit_is_refused_while_it_compiles(fake, make_inputs, calls, stage):
    function, arguments = good_call(stage, tokens=17) if stage else op_call(make_inputs)
    name = stage.function if stage else "npu_chunk_kda"
    with pytest.raises(RuntimeError, match=f"{name} runs in PyNative mode only: .*'bytecode'"):
        ms.jit(function)(**arguments)
    assert calls == []
    function(**arguments)
    assert calls


@pytest.mark.parametrize("differentiated", [False, True])
def test_graph_mode_cell_is_refused(fake, make_inputs, calls, differentiated):
    _, arguments = op_call(make_inputs)

    class Layer(ms.nn.Cell):
        def construct(self, q):
            o, _ = kda.npu_chunk_kda(**{**arguments, "q": q})
            return o.astype(ms.float32).sum()

    layer = Layer()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        run = ms.grad(layer) if differentiated else layer
        with pytest.raises(RuntimeError, match="npu_chunk_kda runs in PyNative mode only"):
            run(arguments["q"])
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert calls == []
    kda.npu_chunk_kda(**arguments)
