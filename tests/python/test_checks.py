# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Every wrong argument is named, with what was expected and what came; then the next call works."""

import inspect
import re
from fractions import Fraction

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import stage_table as table


def bf16(*shape):
    return ms.ops.zeros(shape, ms.bfloat16)


def fp32(*shape):
    return ms.ops.zeros(shape, ms.float32)


SHAPE = (2, 3, 65, 128)

WRONG = [
    # changes, exception, what the message must hold
    (dict(q=None), TypeError, ["q: expected a mindspore.Tensor, got None"]),
    (dict(v=[1.0]), TypeError, ["v: expected a mindspore.Tensor", "list"]),
    (dict(q=np.zeros(SHAPE)), TypeError, ["q: expected a mindspore.Tensor", "ndarray"]),
    (
        dict(q=ms.ops.zeros(SHAPE, ms.int32)),
        TypeError,
        ["q: expected bfloat16 or float16, got int32"],
    ),
    (
        dict(v=ms.ops.zeros(SHAPE, ms.float16)),
        TypeError,
        ["v: expected bfloat16 (as q), got float16"],
    ),
    (
        dict(q=ms.ops.zeros(SHAPE, ms.float16)),
        TypeError,
        ["k: expected float16 (as q), got bfloat16"],
    ),
    (dict(v=fp32(*SHAPE)), TypeError, ["v: expected bfloat16 or float16, got float32; ", "192 KB"]),
    (
        dict(g=ms.ops.zeros(SHAPE, ms.float16)),
        TypeError,
        ["g: expected bfloat16 or float32 (as q), got float16"],
    ),
    (
        dict(q=bf16(2, 3, 65)),
        ValueError,
        [
            "q: expected 4 dimensions ([B, Hk, T, K]; as layouts BNSD and BSND; NTD and TND have",
            "got shape [2, 3, 65]",
        ],
    ),
    (dict(q=bf16(2, 3, 65, 64)), ValueError, ["q: ", "K = 128", "[2, 3, 65, 64]"]),
    (dict(v=bf16(2, 3, 65, 96)), ValueError, ["v: ", "V = 128", "[2, 3, 65, 96]"]),
    (dict(k=bf16(2, 3, 64, 128)), ValueError, ["k: ", "T = 65, as in q", "[2, 3, 64, 128]"]),
    (dict(g=bf16(2, 2, 65, 128)), ValueError, ["g: ", "Hv = 3, as in v", "[2, 2, 65, 128]"]),
    (dict(beta=bf16(2, 3, 65, 1)), ValueError, ["beta: expected shape [2, 3, 65] ([B, Hv, T])"]),
    (dict(g=bf16(2, 3, 65)), ValueError, ["g: expected shape [2, 3, 65, 128]", "[2, 3, 65]"]),
    (dict(q=bf16(2, 3, 65, 96)), ValueError, ["q: expected shape [2, 3, 65, 128]", "K = 128"]),
    (dict(beta=bf16(1, 3, 65)), ValueError, ["beta: ", "B = 2, as in q", "[1, 3, 65]"]),
    (
        dict(g=ms.ops.zeros(SHAPE, ms.int8)),
        TypeError,
        ["g: expected bfloat16 or float16 or float32", "int8"],
    ),
    (dict(a_log=bf16(3)), TypeError, ["a_log: expected float32, got bfloat16"]),
    (dict(a_log=fp32(4)), ValueError, ["a_log: ", "Hv = 3, as in v; layout is 'BNSD'", "[4]"]),
    (dict(a_log=None), ValueError, ["a_log: expected a float32 tensor [Hv]", "got None"]),
    (dict(dt_bias=fp32(3)), ValueError, ["dt_bias: expected shape [3, 128] or [384]", "got [3]"]),
    (dict(dt_bias=fp32(128, 3)), ValueError, ["dt_bias: ", "Hv = 3"]),
    (dict(q=bf16(0, 3, 65, 128)), ValueError, ["q: ", "B >= 1, got [0, 3, 65, 128]"]),
    (dict(scale=None), TypeError, ["scale: ", "None"]),
    (dict(scale="x"), TypeError, ["scale: expected a float, got str 'x'"]),
    (dict(scale=True), TypeError, ["scale: expected a float, got bool True"]),
    (dict(scale=float("nan")), ValueError, ["scale: expected a finite number, got nan"]),
    (dict(scale=1e39), ValueError, ["scale: expected a number that float32 can hold", "1e+39"]),
    (
        dict(lower_bound=-1e-300),
        ValueError,
        ["lower_bound: expected a number that float32 can hold", "-1e-300"],
    ),
    (
        dict(scale=Fraction(10**400, 3)),
        ValueError,
        ["scale: expected a number that float32 can hold"],
    ),
    (dict(scale=10**400), ValueError, ["scale: expected a number that float32 can hold", "..."]),
    (dict(epsilon=float("inf")), ValueError, ["epsilon: expected a finite number >= 0, got inf"]),
    (dict(epsilon=-1.0), ValueError, ["epsilon: expected a finite number >= 0, got -1.0"]),
    (dict(chunk_size=32), ValueError, ["chunk_size: expected 64, got 32"]),
    (dict(chunk_size=128), ValueError, ["chunk_size: expected 64, got 128"]),
    (dict(chunk_size=2**63), ValueError, ["chunk_size: expected a number that int64 can hold"]),
    (dict(chunk_size=64.0), TypeError, ["chunk_size: expected an int, got float 64.0"]),
    (dict(lower_bound=0.0), ValueError, ["lower_bound: expected a number in [-5, 0), got 0.0"]),
    (dict(lower_bound=-5.1), ValueError, ["lower_bound: ", "[-5, 0)", "-5.1"]),
    (dict(layout="SBND"), ValueError, ["layout: expected one of BNSD, BSND, NTD, TND", "'SBND'"]),
    (dict(layout=3), TypeError, ["layout: ", "int 3"]),
    (dict(safe_gate=1), TypeError, ["safe_gate: expected a bool, got int 1"]),
    (dict(allow_neg_eigval=True), ValueError, ["allow_neg_eigval: ", "use_beta_sigmoid_in_kernel"]),
    (dict(q=bf16(2, 4, 65, 128), k=bf16(2, 4, 65, 128)), ValueError, ["heads", "Hk = 4", "Hv = 3"]),
    (
        dict(q=bf16(2, 2, 65, 128), k=bf16(2, 2, 65, 128)),
        ValueError,
        ["heads: expected Hv to be a multiple of Hk, got Hk = 2, Hv = 3"],
    ),
]


@pytest.fixture(params=["npu_chunk_kda", "npu_chunk_kda_fwd_prepare"])
def function(request):
    return getattr(kda, request.param)


def check_message(error, function, parts):
    text = str(error.value)
    assert text.startswith(function.__name__ + ": ")
    for part in parts:
        assert part in text
    assert len(text) < 300


@pytest.mark.parametrize("changes, exception, parts", WRONG)
def test_wrong_argument(fake, make_inputs, function, changes, exception, parts):
    with pytest.raises(exception) as error:
        function(**make_inputs().arguments(**changes))
    check_message(error, function, parts)
    function(**make_inputs().arguments())


@pytest.mark.parametrize(
    "state, exception, parts",
    [
        (fp32(2, 3, 128, 64), ValueError, ["initial_state: ", "V = 128"]),
        (fp32(1, 3, 128, 128), ValueError, ["initial_state: ", "N = 2, the batch size of q"]),
        (
            fp32(3, 128, 128),
            ValueError,
            ["initial_state: expected shape [2, 3, 128, 128] ([N, Hv, K, V])"],
        ),
        (ms.ops.zeros((2, 3, 128, 128), ms.int32), TypeError, ["initial_state: ", "int32"]),
        ("zero", TypeError, ["initial_state: expected a mindspore.Tensor or None, got str"]),
    ],
)
def test_wrong_initial_state(fake, make_inputs, state, exception, parts):
    with pytest.raises(exception) as error:
        kda.npu_chunk_kda(**make_inputs().arguments(initial_state=state))
    check_message(error, kda.npu_chunk_kda, parts)


CACHE = dict(k=(2, 3, 65, 128), w=(2, 3, 65, 128), u=(2, 3, 65, 128))


def test_caches_must_fit_each_other(fake):
    caches = {name: bf16(*shape) for name, shape in CACHE.items()}
    gk = fp32(2, 3, 65, 128)
    kda.npu_chunk_kda_fwd_h(**caches, gk=gk)
    with pytest.raises(ValueError, match=r"fwd_h: u: .*T = 65, as in k\), got \[2, 3, 64, 128\]"):
        kda.npu_chunk_kda_fwd_h(**{**caches, "u": bf16(2, 3, 64, 128)}, gk=gk)
    with pytest.raises(TypeError, match="fwd_h: gk: expected float32, got bfloat16"):
        kda.npu_chunk_kda_fwd_h(**caches, gk=bf16(2, 3, 65, 128))
    with pytest.raises(TypeError, match="fwd_h: w: expected a mindspore.Tensor, got None"):
        kda.npu_chunk_kda_fwd_h(**{**caches, "w": None}, gk=gk)
    with pytest.raises(TypeError, match="fwd_h: output_final_state: expected a bool, got int 1"):
        kda.npu_chunk_kda_fwd_h(**caches, gk=gk, output_final_state=1)


def test_number_of_chunks(fake):
    arguments = [bf16(2, 3, 65, 128), bf16(2, 3, 65, 64), bf16(2, 3, 65, 128)]
    kda.npu_chunk_kda_fwd_finalize(*arguments, bf16(2, 2, 3, 128, 128))
    with pytest.raises(ValueError, match=r"h: .*Nc = 2, ceil\(T / 64\) with T as in qg_scaled"):
        kda.npu_chunk_kda_fwd_finalize(*arguments, bf16(2, 1, 3, 128, 128))
    arguments[1] = bf16(2, 3, 65, 128)
    with pytest.raises(ValueError, match=r"aqk: .*C = 64, the chunk size"):
        kda.npu_chunk_kda_fwd_finalize(*arguments, bf16(2, 2, 3, 128, 128))


def test_backward_summary_has_no_batch(fake):
    caches = [bf16(2, 3, 65, 128)] * 5
    with pytest.raises(ValueError, match="B: expected 1 .*got 2"):
        kda.npu_chunk_kda_pre_process_bwd(*caches, 0.1, gk=fp32(2, 3, 65, 128))


@pytest.mark.parametrize(
    "changes, exception, parts",
    [
        (dict(rank=4), ValueError, ["rank: expected 0 <= rank < 4", "got 4"]),
        (dict(rank=-1), ValueError, ["rank: "]),
        (dict(pre_or_post_num_ranks=3), ValueError, ["pre_or_post_num_ranks: expected 0 to 2"]),
        (
            dict(forward=False, pre_or_post_num_ranks=2),
            ValueError,
            ["expected 0 to 1", "after rank 2"],
        ),
        (dict(pre_or_post_num_ranks=-1), ValueError, ["got -1"]),
        (dict(state=bf16(3, 128, 128)), TypeError, ["state: expected float32"]),
        (dict(summaries=fp32(4, 3, 128, 128)), ValueError, ["summaries: ", "V+K = 256"]),
        (
            dict(state=fp32(128, 3, 128).transpose(1, 0, 2)),
            ValueError,
            ["state: expected a contiguous Tensor", "a view"],
        ),
    ],
)
def test_wrong_merge(fake, changes, exception, parts):
    arguments = dict(state=fp32(3, 128, 128), summaries=fp32(4, 3, 128, 256))
    arguments.update(pre_or_post_num_ranks=2, rank=2)
    with pytest.raises(exception) as error:
        kda.npu_chunk_kda_merge_fwd_bwd(**{**arguments, **changes})
    check_message(error, kda.npu_chunk_kda_merge_fwd_bwd, parts)
    kda.npu_chunk_kda_merge_fwd_bwd(**arguments)


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_signature_has_the_tables_arguments_and_defaults(stage):
    parameters = inspect.signature(getattr(kda, stage.function)).parameters
    attrs = (*stage.attrs, *stage.python_attrs)
    # fwd_finalize reads the chunk length off aqk; the summaries know no chunk_indices.
    assert set(parameters) == {x.name for x in (*stage.inputs, *attrs)}
    for attr in attrs:
        default = parameters[attr.name].default
        if attr.default is table.REQUIRED:
            assert default is inspect.Parameter.empty
        else:
            assert default == attr.default and type(default) is type(attr.default)
    assert re.search(r"stage \d", getattr(kda, stage.function).__doc__)
