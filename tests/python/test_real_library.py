# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The packaged simulator library through the bridge: what the fake libraries cannot show."""

import os
import re
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import loader
from hyper_parallel_kda import stage_table as table

VARIABLE = "HYPER_PARALLEL_KDA_OPAPI"


def values(tensor):
    return tensor.astype(ms.float32).asnumpy()


def without_symbol(symbol, folder):
    """A copy of the simulator library in which the symbol has another name of the same length."""
    data = loader.SIMULATOR_LIBRARY.read_bytes()
    name = b"\0" + symbol.encode() + b"\0"
    assert data.count(name) >= 1
    path = folder / "libkda_opapi_sim.so"
    path.write_bytes(data.replace(name, b"\0" + b"x" * len(symbol) + b"\0"))
    return path


@pytest.fixture(autouse=True)
def packaged_library(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


def test_default_library_runs(make_inputs):
    x = make_inputs(batch=1, heads=2)
    o, final_state = kda.npu_chunk_kda(**x.arguments(output_final_state=True))
    assert o.shape == (1, 65, 2, 128) and np.isfinite(values(o)).all()
    assert final_state.shape == (1, 2, 128, 128) and np.isfinite(values(final_state)).all()


def test_library_without_one_symbol(monkeypatch, tmp_path, make_inputs):
    library = without_symbol(table.FWD_H.symbol, tmp_path)
    monkeypatch.setenv(VARIABLE, str(library))
    x = make_inputs(batch=1, heads=1)
    expected = f"symbol aclnnChunkKdaFwdH is not in the op library {library}"
    with pytest.raises(RuntimeError, match=expected):
        kda.npu_chunk_kda(**x.arguments())
    kda.npu_chunk_kda_fwd_prepare(**x.arguments())
    monkeypatch.delenv(VARIABLE)
    kda.npu_chunk_kda(**x.arguments())


def test_layouts_give_the_same_bits(make_inputs):
    x = make_inputs("BSND", batch=2, heads=3)
    token_major = kda.npu_chunk_kda(**x.arguments(output_final_state=True))
    names = ("q", "k", "v", "g", "beta")
    views = {name: getattr(x, name).swapaxes(1, 2) for name in names}
    head_major = kda.npu_chunk_kda(**x.arguments(output_final_state=True, layout="BNSD", **views))
    for left, right in zip(token_major, head_major, strict=True):
        assert np.array_equal(values(left), values(right))


def test_inputs_are_not_modified_and_bits_repeat(make_inputs):
    x = make_inputs(batch=1, heads=2)
    arguments = x.arguments(initial_state=x.initial_state[:1, :2], output_final_state=True)
    tensors = {name: value for name, value in arguments.items() if isinstance(value, ms.Tensor)}
    before = {name: values(value).copy() for name, value in tensors.items()}

    def loss(*given):
        o, state = kda.npu_chunk_kda(**{**arguments, **dict(zip(tensors, given, strict=True))})
        return o.astype(ms.float32).sum() + state.sum()

    function = ms.value_and_grad(loss, grad_position=tuple(range(len(tensors))))
    first, second = function(*tensors.values()), function(*tensors.values())
    assert values(first[0]) == values(second[0])
    for name, left, right in zip(tensors, first[1], second[1], strict=True):
        assert np.array_equal(values(left), values(right)), name
        assert np.array_equal(values(tensors[name]), before[name]), name


def test_no_tokens(make_inputs):
    x = make_inputs(batch=2, heads=3, tokens=0)

    def loss(a_log, state):
        o, final_state = kda.npu_chunk_kda(
            **x.arguments(a_log=a_log, initial_state=state, output_final_state=True)
        )
        assert o.shape == (2, 0, 3, 128)
        return o.astype(ms.float32).sum() + (final_state * final_state).sum()

    grads = ms.grad(loss, (0, 1))(x.a_log, x.initial_state)
    state = values(x.initial_state)
    assert not values(grads[0]).any()
    assert np.array_equal(values(grads[1]), 2 * state)
    _, final_state = kda.npu_chunk_kda(**x.arguments(output_final_state=True))
    assert final_state.shape == (2, 3, 128, 128) and not values(final_state).any()


def test_merge_in_place_on_a_slice_of_gathered_summaries():
    rng = np.random.default_rng(1)
    state = rng.standard_normal((2, 128, 128)).astype(np.float32)
    summaries = (rng.standard_normal((3, 2, 128, 256)) * 0.1).astype(np.float32)
    tensor = ms.Tensor(state.copy())
    gathered = ms.Tensor(np.concatenate([summaries, summaries]))
    assert kda.npu_chunk_kda_merge_fwd_bwd(tensor, gathered[3:], 2, 2) is tensor
    expected = state.astype(np.float64)
    for rank in (0, 1):
        expected = summaries[rank, ..., 128:] @ expected + summaries[rank, ..., :128]
    assert np.linalg.norm(tensor.asnumpy() - expected) < 1e-5 * np.linalg.norm(expected)


def test_a_folder_of_the_name_does_not_hide_the_installed_package(tmp_path):
    """A script beside the clone: the clone's folder is a package of nothing to Python."""
    (tmp_path / "hyper_parallel_kda").mkdir()
    code = "from hyper_parallel_kda import npu_chunk_kda; print(npu_chunk_kda.__name__)"
    run = [sys.executable, "-c", code]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "npu_chunk_kda\n", done.stderr


def test_example_of_the_readme_runs():
    text = (loader.PACKAGE.parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    for grad in names["grads"]:
        assert np.isfinite(values(grad)).all() and values(grad).any()
