# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""npu_chunk_kda on float16 tensors: results and every gradient against float64.

float16 rounds eight times finer than bfloat16, and so do the results as long as nothing leaves its
range. A number below 2^-14 has an error of its own, half a step there, which counts for nothing.
"""

import mindspore as ms
import numpy as np
import pytest

from tests.support import chain, inputs, metrics, options, sizes
from tests.support.io_types import FLOAT16
from tests.support.metrics import same_bits

CASES = tuple((gate, decay) for gate in inputs.GATES for decay in inputs.GATES[gate])


def draw(**changes):
    return inputs.make_inputs(inputs.fresh_seed(), io=FLOAT16, **changes)


def check(x, layout="BSND", **overrides):
    got, want = chain.results(x, layout, **overrides), x.results()
    for name, value in got.items():
        assert (value is None) == (want[name] is None), name
        assert value is None or np.isfinite(value).all(), name
    allowed = metrics.limits(1 / options.FINER["float16"])
    if "decay=extreme" in x.case:
        allowed.update(da_log=options.FORGOTTEN, ddt_bias=options.FORGOTTEN)
    floors = options.floors(chain.tensors(x, layout))
    metrics.check_all(
        got, want, allowed, x.upstream_norm(), x.case, floors, lambda: sizes.of(x, want)
    )


@pytest.mark.parametrize(("gate", "decay"), CASES)
def test_gates_and_decays(gate, decay):
    check(draw(tokens=130, heads=8, gate=gate, decay=decay, initial_state=True))


@pytest.mark.parametrize("layout", ("BSND", "BNSD", "TND", "NTD"))
def test_packed_layouts_and_groups(layout):
    bounds = [0, 1, 1, 66, 80, 145]
    check(draw(tokens=145, heads=6, key_heads=2, cu_seqlens=bounds, initial_state=True), layout)


def test_results_have_the_dtypes_of_their_inputs():
    x = draw(tokens=20, heads=2)
    named = chain.tensors(x)
    output, state = chain.call(x, named)
    assert output.dtype == ms.float16 and state.dtype == ms.float32
    grads = ms.grad(
        lambda *args: chain.call(x, {**named, **dict(zip("qkvg", args, strict=True))})[1].sum(),
        grad_position=(0, 1, 2, 3),
    )(*(named[name] for name in "qkvg"))
    assert all(grad.dtype == ms.float16 for grad in grads)


@pytest.mark.parametrize("options", ({}, {"precise_relay": True}), ids=("plain", "pairs"))
def test_recomputed_gradients_have_the_same_bits(options):
    x = draw(tokens=70, heads=2, initial_state=True)
    saved = chain.results(x, disable_recompute=True, **options)
    same_bits(saved, chain.results(x, disable_recompute=False, **options))


def test_precise_relay():
    check(draw(tokens=65, heads=4, decay="strong", loss="final_state"), precise_relay=True)
