# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What holds for every stage: strided inputs, and that no call harms the process."""

import random

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.support.aclnn import BF16, INVALID, NULLPTR, TILING, AclnnError
from tests.support.stage_calls import complete_call, packing, takes_pairs

# With pairs: with the low halves that the stage takes.
CALLS = [(stage, False) for stage in table.STAGES]
CALLS += [(stage, True) for stage in table.STAGES if takes_pairs(stage)]
STAGES = pytest.mark.parametrize(
    "stage, pairs", CALLS, ids=[stage.name + pairs * "-pairs" for stage, pairs in CALLS]
)


def spread(array):
    """The same values in every second element of a wider array."""
    wide = np.zeros(array.shape[:-1] + (2 * array.shape[-1],), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


@STAGES
def test_strided_inputs_give_the_same_bits(lib, stage, pairs):
    arguments, outputs = complete_call(stage, pairs=pairs)
    want = lib.call(stage.op, outputs=outputs, **arguments)
    strided = {
        name: spread(value) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    got = lib.call(stage.op, outputs=outputs, **strided)
    assert set(got) == set(want)
    for name in want:
        np.testing.assert_array_equal(got[name].view(np.uint8), want[name].view(np.uint8))


def mutate_tensor(chance, array):
    kind = chance.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        return array.astype(chance.choice([np.float32, BF16, np.float16, np.int32, np.float64]))
    if kind == 2:
        return array[..., None]
    if kind == 3:
        return array[..., : max(array.shape[-1] - 1, 0)]
    if kind == 4:
        return array.swapaxes(0, -1) if array.ndim else array[None]
    return np.zeros(chance.choice([(0,), (1,) * 8, ()]), array.dtype)


def mutate_attribute(chance, value):
    choices = {
        bool: [True, False],
        int: [-1, 0, 1, 63, 2**62, -(2**63)],
        float: [0.0, float("nan"), float("inf"), -1e30],
        str: ["", "TND", "NTD", "x" * 300],
    }
    return chance.choice(choices[type(value)])


def mutated(chance, arguments, outputs):
    arguments, outputs = dict(arguments), dict(outputs)
    for _ in range(chance.choice([1, 1, 2, 3])):
        name = chance.choice(list(arguments) + [name for name in outputs if outputs[name]])
        if name in outputs:
            shape, dtype = outputs[name]
            changed = [None, (shape[:-1] + (130,), dtype), (shape + (1,), dtype), (shape, np.int8)]
            outputs[name] = chance.choice(changed)
            if outputs[name] is None:
                return arguments, outputs
        elif isinstance(arguments[name], np.ndarray):
            arguments[name] = mutate_tensor(chance, arguments[name])
            if arguments[name] is None:
                return arguments, outputs
        elif arguments[name] is not None:
            arguments[name] = mutate_attribute(chance, arguments[name])
    return arguments, outputs


@STAGES
def test_bad_calls_are_refused_and_good_ones_still_work(lib, stage, pairs):
    arguments, outputs = complete_call(stage, tokens=17, pairs=pairs)
    want = lib.call(stage.op, outputs=outputs, **arguments)
    chance = random.Random(stage.name)
    refused = 0
    for _ in range(60):
        bad_arguments, bad_outputs = mutated(chance, arguments, outputs)
        try:
            lib.call(stage.op, outputs=bad_outputs, **bad_arguments)
        except AclnnError as error:
            refused += 1
            assert error.status in {NULLPTR, INVALID, TILING}, error
            assert error.message.startswith(f"aclnn{stage.op}GetWorkspaceSize: "), error
            assert "no message" not in error.message, error
    assert refused > 20
    again = lib.call(stage.op, outputs=outputs, **arguments)
    for name in want:
        np.testing.assert_array_equal(again[name].view(np.uint8), want[name].view(np.uint8))


def having(name):
    stages = [stage for stage in table.STAGES if any(spec.name == name for spec in stage.inputs)]
    return pytest.mark.parametrize("stage", stages, ids=lambda stage: stage.name)


def twice(value):
    return np.concatenate([value, value]) if isinstance(value, np.ndarray) else value


PACKED, WITH_SLOTS = having("cu_seqlens"), having("chunk_indices")

BAD_BOUNDS = {
    "short": ([0], "cu_seqlens: expected at least 2 entries, got 1"),
    "start": ([1, 70, 130], "cu_seqlens: expected its first entry to be 0, got 1"),
    "negative": ([-64, 130], None),
    "decreasing": (
        [0, 70, 69, 130],
        "expected entries that do not decrease, got 69 behind 70 (entry 2)",
    ),
    "end": ([0, 70, 129], "cu_seqlens: expected its last entry to be T = 130, got 129"),
    "beyond": ([0, 131], None),
    "far beyond": ([0, 2**62], None),
}


@pytest.mark.parametrize("case", BAD_BOUNDS)
@PACKED
def test_bounds_are_checked(lib, stage, case):
    bounds, message = BAD_BOUNDS[case]
    arguments, outputs = complete_call(stage, tokens=130)
    arguments.update(packing(stage, [0, 70, 130]), cu_seqlens=bounds)
    with pytest.raises(AclnnError) as error:
        lib.call(stage.op, outputs=outputs, **arguments)
    assert error.value.status == TILING
    assert (message or "cu_seqlens: expected") in error.value.message


BAD_PAIRS = {
    "none": (None, "expected 4 pairs (the chunks of cu_seqlens), got none"),
    "missing": ([0, 0, 0, 1, 1, 0], "expected 4 pairs (the chunks of cu_seqlens), got 6 numbers"),
    "half a pair": (
        [0, 0, 0, 1, 1, 0, 2],
        "expected 4 pairs (the chunks of cu_seqlens), got 7 numbers",
    ),
    "order": ([0, 0, 1, 0, 0, 1, 2, 0], "expected (0, 1) as pair 1, got (1, 0)"),
    "empty one": ([0, 0, 0, 1, 1, 0, 1, 0], "expected (2, 0) as pair 2, got (1, 0)"),
    "far": ([0, 0, 0, 1, 2, 0, 2, 2**40], "expected (2, 1) as pair 3, got (2, 1099511627776)"),
    "negative": ([0, 0, 0, -1, 2, 0, 2, 1], "expected (0, 1) as pair 1, got (0, -1)"),
}


@pytest.mark.parametrize("case", BAD_PAIRS)
@WITH_SLOTS
def test_pairs_are_checked(lib, stage, case):
    cu_seqlens = [0, 65, 65, 130]
    pairs, message = BAD_PAIRS[case]
    arguments, outputs = complete_call(stage, cu_seqlens=cu_seqlens)
    with pytest.raises(AclnnError) as error:
        lib.call(stage.op, outputs=outputs, **{**arguments, "chunk_indices": pairs})
    assert error.value.status == TILING and message in error.value.message
    with pytest.raises(AclnnError, match="chunk_indices: expected None without cu_seqlens"):
        lib.call(stage.op, outputs=outputs, **{**arguments, "cu_seqlens": None})


@PACKED
def test_a_packed_batch_has_one_row(lib, stage):
    arguments, outputs = complete_call(stage, batch=2, tokens=17)
    if stage.name == "pre_process_bwd":  # never has more than one
        arguments = {n: twice(x) for n, x in arguments.items()}
    with pytest.raises(AclnnError, match="B: expected 1 .*, got 2"):
        lib.call(stage.op, outputs=outputs, **arguments, **packing(stage, [0, 17]))
