# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""cu_seqlens and chunk_indices: what is taken for them, what arrives, what bad ones are told."""

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import stage_table as table
from tests.python.test_same_words import refusals
from tests.support import stage_calls
from tests.support.aclnn import Library
from tests.support.public_calls import to_python

BOUNDS = [0, 5, 5, 70]
PAIRS = [[0, 0], [2, 0], [2, 1]]
FLAT = [0, 0, 2, 0, 2, 1]

PACKED = [
    stage for stage in table.STAGES if any(spec.name == "cu_seqlens" for spec in stage.inputs)
]
STAGES = pytest.mark.parametrize("stage", PACKED, ids=lambda stage: stage.name)
WITH_SLOTS = [stage for stage in PACKED if stage.name not in ("pre_process_fwd", "pre_process_bwd")]


def call(stage, layout="TND", **changes):
    arguments, _ = stage_calls.complete_call(stage, cu_seqlens=BOUNDS, layout=layout)
    arguments.pop("chunk_indices", None)
    return getattr(kda, stage.function)(**{**to_python(arguments), **changes})


def kinds(values):
    """The same numbers in every kind that is taken."""
    array = np.array(values)
    tuples = tuple(map(tuple, values)) if array.ndim == 2 else tuple(values)
    yield values
    yield tuples
    yield from (array.astype(kind) for kind in "bBhHiIqQ")
    yield array[::-1].copy()[::-1]  # strided
    yield [np.int32(x) for x in values] if array.ndim == 1 else list(array)
    yield from (ms.Tensor(array.astype(kind)) for kind in "bBhiq")


@STAGES
def test_every_kind_of_list_arrives_the_same(fake, stage):
    slots = " a" + ",".join(map(str, FLAT)) if stage in WITH_SLOTS else ""
    for bounds in kinds(BOUNDS):
        call(stage, cu_seqlens=bounds)
        assert f" a0,5,5,70{slots} " in fake.trace + " "


@pytest.mark.parametrize("pairs", [PAIRS, FLAT])
def test_every_kind_of_pairs_arrives_the_same(fake, pairs):
    for chunk_indices in kinds(pairs):
        call(table.FWD_H, chunk_indices=chunk_indices)
        assert " a0,5,5,70 a0,0,2,0,2,1 " in fake.trace


def test_the_callers_lists_stay_as_they_are(fake):
    bounds, pairs = list(BOUNDS), [list(pair) for pair in PAIRS]
    call(table.FWD_H, cu_seqlens=bounds, chunk_indices=pairs)
    assert bounds == BOUNDS and pairs == PAIRS


def test_no_chunk_at_all_is_no_list(fake):
    arguments, _ = stage_calls.complete_call(table.FWD_H, cu_seqlens=[0, 0, 0], layout="NTD")
    for chunk_indices in (None, [], np.zeros((0, 2), np.int64)):
        kda.npu_chunk_kda_fwd_h(**{**to_python(arguments), "chunk_indices": chunk_indices})
        assert " a0,0,0 - " in fake.trace


LISTS = "a list, tuple, NumPy array or Tensor of integers"
WRONG = [
    (dict(cu_seqlens=[0.0, 70.0]), TypeError, f"cu_seqlens: expected {LISTS}, got float 0.0 in it"),
    (dict(cu_seqlens=[0, True, 70]), TypeError, f"cu_seqlens: expected {LISTS}, got bool True"),
    (dict(cu_seqlens=[0, None, 70]), TypeError, f"cu_seqlens: expected {LISTS}, got NoneType None"),
    (dict(cu_seqlens="0,70"), TypeError, f"cu_seqlens: expected {LISTS}, got str"),
    (dict(cu_seqlens=70), TypeError, f"cu_seqlens: expected {LISTS}, got int"),
    (dict(cu_seqlens=range(0, 71, 70)), TypeError, f"cu_seqlens: expected {LISTS}, got range"),
    (
        dict(cu_seqlens=np.array([0, 70], np.float32)),
        TypeError,
        f"cu_seqlens: expected {LISTS}, got dtype float32",
    ),
    (
        dict(cu_seqlens=np.array([False, True])),
        TypeError,
        f"cu_seqlens: expected {LISTS}, got dtype bool",
    ),
    (
        dict(cu_seqlens=ms.Tensor([0.0, 70.0], ms.float32)),
        TypeError,
        f"cu_seqlens: expected {LISTS}, got dtype float32",
    ),
    (
        dict(cu_seqlens=ms.Tensor([0.0, 70.0], ms.bfloat16)),
        TypeError,
        f"cu_seqlens: expected {LISTS}, got dtype bfloat16",
    ),
    (dict(cu_seqlens=ms.Tensor([False, True])), TypeError, f"{LISTS}, got dtype bool"),
    (dict(cu_seqlens=[[0, 70]]), ValueError, "cu_seqlens: expected one axis of N + 1 entries"),
    (dict(cu_seqlens=np.array(7)), ValueError, "cu_seqlens: expected one axis of N + 1 entries"),
    (dict(cu_seqlens=[]), ValueError, "cu_seqlens: expected at least 2 entries, got 0"),
    (dict(cu_seqlens=[0]), ValueError, "cu_seqlens: expected at least 2 entries, got 1"),
    (dict(cu_seqlens=[1, 70]), ValueError, "cu_seqlens: expected its first entry to be 0, got 1"),
    (dict(cu_seqlens=[-1, 70]), ValueError, "cu_seqlens: expected its first entry to be 0, got -1"),
    (
        dict(cu_seqlens=[0, 9, 8, 70]),
        ValueError,
        "cu_seqlens: expected entries that do not decrease, got 8 behind 9 (entry 2)",
    ),
    (
        dict(cu_seqlens=[0, 5, 69]),
        ValueError,
        "cu_seqlens: expected its last entry to be T = 70 (as in k), got 69",
    ),
    (dict(cu_seqlens=[0, 71]), ValueError, "its last entry to be T = 70 (as in k), got 71"),
    (dict(cu_seqlens=[0, 2**63]), ValueError, "cu_seqlens: expected integers of 64 bits"),
    (
        dict(cu_seqlens=np.array([0, 2**63 + 1], np.uint64)),
        ValueError,
        "cu_seqlens: expected integers of 64 bits",
    ),
    (
        dict(cu_seqlens=None, chunk_indices=PAIRS),
        ValueError,
        "chunk_indices: expected None without cu_seqlens, got a list",
    ),
    (dict(chunk_indices=[0.5] * 6), TypeError, f"chunk_indices: expected {LISTS}, got float 0.5"),
    (
        dict(chunk_indices=[[0, 0], [2]]),
        ValueError,
        "chunk_indices: expected entries of one length",
    ),
    (
        dict(chunk_indices=np.array(PAIRS).T),
        ValueError,
        "chunk_indices: expected shape [Nc, 2], or flat [2 * Nc], got shape [2, 3]",
    ),
    (dict(chunk_indices=np.zeros((1, 3, 2), int)), ValueError, "or flat [2 * Nc], got shape [1, 3"),
    (
        dict(chunk_indices=PAIRS[:2]),
        ValueError,
        "chunk_indices: expected 3 pairs (the chunks of cu_seqlens), got 4 numbers",
    ),
    (
        dict(chunk_indices=[[0, 0], [2, 1], [2, 0]]),
        ValueError,
        "chunk_indices: expected (2, 0) as pair 1, got (2, 1)",
    ),
    (
        dict(chunk_indices=[0, 0, 1, 0, 2, 0]),
        ValueError,
        "chunk_indices: expected (2, 0) as pair 1, got (1, 0)",
    ),
]


@pytest.mark.parametrize("changes, exception, message", WRONG)
def test_wrong_lists(fake, changes, exception, message):
    with pytest.raises(exception) as error:
        call(table.FWD_H, **changes)
    text = str(error.value)
    assert text.startswith("npu_chunk_kda_fwd_h: ") and message in text and len(text) < 300
    call(table.FWD_H)


def test_a_long_list_makes_no_long_message(fake):
    with pytest.raises(TypeError) as error:
        call(table.FWD_H, cu_seqlens=["x" * 10_000] * 1000)
    assert len(str(error.value)) < 300


@STAGES
@pytest.mark.parametrize(
    "bounds", [[0], [3, 5, 17], [0, 9, 8, 17], [0, 5, 16], [0, 5, 18], [0, 5, 2**62]], ids=str
)
def test_bad_bounds_in_the_same_words(stage, bounds):
    lists = {**stage_calls.packing(stage, [0, 17]), "cu_seqlens": bounds}
    c, python = refusals(Library.kda(), stage, lambda a: lists)
    assert c == python and c[0] == "cu_seqlens"


@pytest.mark.parametrize("pairs", [[0], [0, 0, 0, 1], [1, 0], [0, 1], [0, -1], [2**40, 0]], ids=str)
@pytest.mark.parametrize("stage", WITH_SLOTS, ids=lambda stage: stage.name)
def test_bad_pairs_in_the_same_words(stage, pairs):
    lists = {"cu_seqlens": [0, 17], "chunk_indices": pairs}
    c, python = refusals(Library.kda(), stage, lambda a: lists)
    assert c == python and c[0] == "chunk_indices"


@pytest.mark.parametrize("stretch", [[5, 5], [3, 17], [0, 4]])
def test_a_stretch_of_tokens_for_the_backward_summary(fake, stretch):
    arguments, _ = stage_calls.complete_call(table.PRE_PROCESS_BWD, tokens=17)
    python = to_python(arguments)
    kda.npu_chunk_kda_pre_process_bwd(**python, cu_seqlens=stretch)
    assert " a" + ",".join(map(str, stretch)) + " " in fake.trace
    with pytest.raises(ValueError, match="its first entry to be at least 0, got -1"):
        kda.npu_chunk_kda_pre_process_bwd(**python, cu_seqlens=[-1, 4])
    for bad in ([5, 4], [3, 18], [3, 4, 17]):
        with pytest.raises(ValueError, match="cu_seqlens: expected"):
            kda.npu_chunk_kda_pre_process_bwd(**python, cu_seqlens=bad)


def test_layouts_of_one_call_agree():
    arguments, _ = stage_calls.complete_call(table.BWD_FINALIZE, tokens=17)
    for change in (dict(input_layout="TND"), dict(output_layout="NTD")):
        c, python = refusals(Library.kda(), table.BWD_FINALIZE, lambda a, change=change: change)
        assert c == python and "layout" in c[0]


def test_rank_says_which_layouts_there_are(fake):
    arguments, _ = stage_calls.complete_call(table.FWD_FINALIZE, tokens=17, layout="NTD")
    arguments["output_layout"] = "BSND"
    message = (
        r"qg_scaled: expected 4 dimensions .*BNSD and BSND; NTD and TND have no batch axis; "
        r"output_layout is 'BSND'\), "
        r"got shape \[2, 17, 128\]"
    )
    with pytest.raises(ValueError, match=message):
        kda.npu_chunk_kda_fwd_finalize(**to_python(arguments))


def test_shape_errors_name_the_layout_option_of_the_function(fake):
    arguments, _ = stage_calls.complete_call(table.BWD_FINALIZE, tokens=17)
    python = to_python({**arguments, "raw_g": arguments["raw_g"][:, :, :-1]})
    with pytest.raises(ValueError, match=r"raw_g: .*; input_layout is 'BNSD'\), got"):
        kda.npu_chunk_kda_bwd_finalize(**python)
