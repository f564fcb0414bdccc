# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Arguments for any stage of the stage table: for tests that treat all stages alike."""

import numpy as np

from hyper_parallel_kda import stage_table as table
from tests.support import reference
from tests.support.io_types import BFLOAT16


def dtypes(io):
    """NumPy's for the table's."""
    return {"io": io.dtype, "fp32": np.dtype(np.float32), "io|fp32": io.dtype}


DTYPES = dtypes(BFLOAT16)

# Values that the table leaves to the caller, and those that the stages support today.
REQUIRED = {"scale": 0.1, "pre_or_post_num_ranks": 2, "rank": 2}
SUPPORTED = {"use_gate_in_kernel": True, "safe_gate": True}


def sizes(stage, batch=1, tokens=65, key_heads=2, value_heads=2, ranks=3, cu_seqlens=None):
    """All dimension symbols; packed sequences give the tokens. pre_process_bwd takes one batch row
    only."""
    if stage.name == "pre_process_bwd" or cu_seqlens is not None:
        batch = 1
    tokens = tokens if cu_seqlens is None else cu_seqlens[-1]
    return {
        "B": batch, "N": reference.sequence_count(batch, cu_seqlens), "T": tokens,
        "Nc": reference.chunk_count(tokens, cu_seqlens=cu_seqlens), "C": 64, "K": 128, "V": 128,
        "Hk": key_heads, "Hv": value_heads, "R": ranks,
    }  # fmt: skip


def packing(stage, cu_seqlens):
    """The stage's index arrays."""
    if cu_seqlens is None:
        return {}
    lists = {"cu_seqlens": list(cu_seqlens), "chunk_indices": reference.chunk_indices(cu_seqlens)}
    names = [spec.name for spec in stage.inputs]
    return {name: value for name, value in lists.items() if name in names}


def attributes(stage, layout="BNSD"):
    def value(spec):
        if spec.choices == table.LAYOUTS:
            return layout
        return SUPPORTED.get(spec.name, REQUIRED.get(spec.name, spec.default))

    return {spec.name: value(spec) for spec in stage.attrs}


def takes_pairs(stage):
    """Whether the stage has low halves among its inputs or outputs."""
    return any(spec.name.endswith("_low") for spec in (*stage.inputs, *stage.outputs))


def tensors(stage, dims, values, rng=None, rank3=False, pairs=False, io=BFLOAT16):
    """Every tensor input: zeros, or random numbers when a generator is given. The low halves of
    pairs, which change how a stage computes, only when asked for."""
    arrays = {}
    for spec in stage.inputs:
        if isinstance(spec, table.TensorSpec):
            if spec.name.endswith("_low") and not pairs:
                arrays[spec.name] = None
                continue
            shape = table.output_shape(spec, values, dims, rank3)
            size = 0.3 * io.epsilon if spec.name.endswith("_low") else 0.3
            data = np.zeros(shape) if rng is None else size * rng.standard_normal(shape)
            arrays[spec.name] = data.astype(dtypes(io)[spec.dtype])
    return arrays


def outputs(stage, dims, values, arrays, rank3=False, io=BFLOAT16):
    """{name: (shape, dtype)} of every output, in-place ones excepted."""
    wanted = {}
    for spec in stage.outputs:
        if spec.name != stage.in_place:
            source = arrays.get(spec.dtype[1:])
            dtype = dtypes(io)[spec.dtype] if spec.dtype[0] != "=" else source.dtype
            if spec.wide is not None and spec.wide(values):
                dtype = DTYPES["fp32"]
            wanted[spec.name] = (table.output_shape(spec, values, dims, rank3), dtype)
    return wanted


def complete_call(
    stage, seed=0, layout="BNSD", cu_seqlens=None, pairs=False, io=BFLOAT16, **options
):
    """(arguments, outputs) of a call of the stage with random tensors. None: an output that its
    attributes do not ask for."""
    dims = sizes(stage, cu_seqlens=cu_seqlens, **options)
    values = attributes(stage, layout)
    if "precise_relay" in values:
        values["precise_relay"] = pairs
    rank3 = layout in table.RANK3_LAYOUTS
    arrays = tensors(stage, dims, values, np.random.default_rng(seed), rank3, pairs, io)
    arguments = {**values, **arrays, **packing(stage, cu_seqlens)}
    asked = {"output_final_state": True, **arguments}  # which is no attribute of its op
    every = outputs(stage, dims, values, arrays, rank3, io)
    for spec in stage.outputs:
        if spec.name in every and not table.is_present(spec, asked):
            every[spec.name] = None
    return arguments, every
