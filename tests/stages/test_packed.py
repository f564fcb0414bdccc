# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Every stage on packed sequences and on rank 3 tensors: the bits that dense calls give.

The other tests of this folder judge dense calls against float64. A chunk's arithmetic does not
depend on where the chunk lies, so packed calls must give the same bits, sequence by sequence.
"""

import itertools

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import stage_runs
from tests.support import inputs
from tests.support.io_types import FLOAT16
from tests.support.metrics import relative_l2
from tests.support.stage_calls import complete_call, takes_pairs

PACKED = [
    stage for stage in table.STAGES if any(spec.name == "cu_seqlens" for spec in stage.inputs)
]
STAGES = pytest.mark.parametrize("stage", PACKED, ids=lambda stage: stage.name)
SUMS = ("da_log", "ddt_bias")  # over all tokens of a call

LENGTHS = {
    "tails and empty ones": [5, 0, 65, 1, 129, 64, 0, 0, 16],
    "first and last empty": [0, 33, 0],
    "one-token tails": [65, 1, 129, 193, 1],
    "single tokens": [1] * 9,
    "many short": [16, 32, 63] * 7,
    "640 and 783": [640, 783],
}


def is_first_only(stage):
    return stage.name == "pre_process_bwd"


def axis_of(spec, symbol, values, rank3):
    dims = table.placed_dims(spec, values, rank3)
    return dims.index(symbol) if symbol in dims else None


def part(array, spec, values, rank3, spans):
    """The slice of a tensor that belongs to one sequence; spans: symbol -> (start, stop)."""
    for symbol, span in spans.items():
        axis = axis_of(spec, symbol, values, rank3)
        if axis is not None and array is not None:
            array = array[(slice(None),) * axis + (slice(*span),)]
    return array


def sequences(stage, arguments, cu_seqlens, rank3=False):
    """For each sequence (spans, arguments of a dense call on it alone)."""
    first_slot = 0
    for n, (start, stop) in enumerate(itertools.pairwise(cu_seqlens)):
        chunks = -(-(stop - start) // 64)
        spans = {"T": (start, stop), "N": (n, n + 1), "Nc": (first_slot, first_slot + chunks)}
        first_slot += chunks
        alone = {
            name: value
            for name, value in arguments.items()
            if name not in ("cu_seqlens", "chunk_indices")
        }
        for spec in stage.inputs:
            if isinstance(spec, table.TensorSpec) and alone[spec.name] is not None:
                alone[spec.name] = np.ascontiguousarray(
                    part(alone[spec.name], spec, arguments, rank3, spans)
                )
        yield spans, alone


def shapes_alone(stage, alone, wanted, spans, rank3=False):
    out = {}
    for spec in stage.outputs:
        shape = wanted[spec.name]
        if shape is not None:
            sizes = {symbol: stop - start for symbol, (start, stop) in spans.items()}
            dims = table.placed_dims(spec, alone, rank3)
            shape = (
                tuple(sizes.get(dim, n) for dim, n in zip(dims, shape[0], strict=True)),
                shape[1],
            )
        out[spec.name] = shape
    return out


def assert_as_dense(lib, stage, cu_seqlens, **options):
    arguments, outputs = complete_call(stage, cu_seqlens=cu_seqlens, **options)
    got = lib.call(stage.op, outputs=outputs, **arguments)
    totals = {}
    for spans, alone in sequences(stage, arguments, cu_seqlens):
        if is_first_only(stage) and spans["N"][0] > 0:
            break
        want = lib.call(stage.op, outputs=shapes_alone(stage, alone, outputs, spans), **alone)
        for spec in stage.outputs:
            if got.get(spec.name) is None:
                continue
            if spec.name in SUMS:
                totals[spec.name] = totals.get(spec.name, 0.0) + want.f32(spec.name)
                continue
            mine = part(got[spec.name], spec, arguments, False, spans)
            assert mine.tobytes() == want[spec.name].tobytes(), (
                f"{spec.name} of sequence {spans['N'][0]}, tokens {spans['T']}, differs"
            )
    for name, total in totals.items():
        assert relative_l2(got.f32(name), total) < 1e-5, name


@STAGES
@pytest.mark.parametrize("case", LENGTHS)
def test_bits_of_separate_dense_calls(lib, stage, case):
    assert_as_dense(lib, stage, inputs.packed(LENGTHS[case]))


@pytest.mark.parametrize(
    "stage", [stage for stage in PACKED if takes_pairs(stage)], ids=lambda stage: stage.name
)
def test_low_halves(lib, stage):
    assert_as_dense(lib, stage, inputs.packed(LENGTHS["tails and empty ones"]), pairs=True)


@STAGES
def test_float16(lib, stage):
    cu_seqlens = inputs.packed(LENGTHS["tails and empty ones"])
    for pairs in (False, True) if takes_pairs(stage) else (False,):
        assert_as_dense(lib, stage, cu_seqlens, pairs=pairs, io=FLOAT16)


@STAGES
def test_every_tail(lib, stage):
    """Tails of every length behind a full chunk; pre_process_bwd takes the first sequence only."""
    lengths = [64 + tail for tail in range(1, 64)]
    if is_first_only(stage):
        for length in lengths[::9]:
            assert_as_dense(lib, stage, inputs.packed([length, 7]), value_heads=1, key_heads=1)
    else:
        assert_as_dense(lib, stage, inputs.packed(lengths), value_heads=1, key_heads=1)


@STAGES
@pytest.mark.parametrize("cu_seqlens", [None, inputs.packed(LENGTHS["tails and empty ones"])])
@pytest.mark.parametrize("token_major", [False, True])
def test_rank_3_has_the_bits_of_rank_4(lib, stage, cu_seqlens, token_major):
    tokens = {} if cu_seqlens else {"tokens": 130}
    names = ("TND", "BSND") if token_major else ("NTD", "BNSD")
    results = []
    for layout in names:
        arguments, outputs = complete_call(stage, layout=layout, cu_seqlens=cu_seqlens, **tokens)
        results.append(lib.call(stage.op, outputs=outputs, **arguments))
    for spec in stage.outputs:
        three, four = (result.get(spec.name) for result in results)
        if three is not None:
            assert four.tobytes() == three.tobytes(), spec.name
            with_rows = "T" in spec.dims and spec.dims[0] == "B"
            assert three.shape == (four.shape[1:] if with_rows else four.shape)


@STAGES
def test_same_bits_on_any_machine(lib, stage):
    cu_seqlens = inputs.packed([70, 0, 1, 200, 64, 3])
    arguments, outputs = complete_call(stage, cu_seqlens=cu_seqlens, layout="TND")
    stage_runs.assert_same_bits(lib, stage.op, outputs=outputs, **arguments)


@STAGES
def test_nan_stays_in_its_sequence(lib, stage):
    """Neighbours of the spoiled sequence lie in the same chunk-sized stretch of memory."""
    cu_seqlens = inputs.packed([20, 30, 70, 10])
    spoiled = 1
    start, stop = cu_seqlens[spoiled : spoiled + 2]
    for spec in stage.inputs:
        if not isinstance(spec, table.TensorSpec) or "T" not in spec.dims:
            continue
        pairs = spec.name.endswith("_low")
        arguments, outputs = complete_call(stage, cu_seqlens=cu_seqlens, pairs=pairs)
        # One core: what one sequence leaves in the buffers meets the next one.
        with lib.cores(1):
            want = lib.call(stage.op, outputs=outputs, **arguments)
            axis = axis_of(spec, "T", arguments, False)
            rows = (slice(None),) * axis + (slice(start, stop),)
            arguments[spec.name] = arguments[spec.name].copy()
            arguments[spec.name][rows] = np.nan
            got = lib.call(stage.op, outputs=outputs, **arguments)
        for n, (spans, _) in enumerate(sequences(stage, arguments, cu_seqlens)):
            for out in stage.outputs:
                if n != spoiled and got.get(out.name) is not None and out.name not in SUMS:
                    mine, others = (
                        part(result[out.name], out, arguments, False, spans)
                        for result in (got, want)
                    )
                    assert mine.tobytes() == others.tobytes(), (spec.name, out.name, n)
