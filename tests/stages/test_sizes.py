# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What the tilings ask for: workspace by chunks, in 64 bits, for shapes that no test can allocate;
and offsets beyond 32 bits, on memory that is mapped and hardly touched."""

import mmap

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import scan_cases, test_pre_process_bwd
from tests.support import inputs, stage_calls
from tests.support.aclnn import BF16, ShapesOnly

STAGES = pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
RESERVED = 16 * 2**20  # what GetLibApiWorkSpaceSize adds


def workspace_size(lib, stage, layout="BNSD", cu_seqlens=None, **options):
    dims = stage_calls.sizes(stage, cu_seqlens=cu_seqlens, **options)
    values = stage_calls.attributes(stage, layout)
    rank3 = layout in table.RANK3_LAYOUTS

    def sized(spec):
        return table.output_shape(spec, values, dims, rank3)

    tensors = {
        spec.name: (sized(spec), stage_calls.DTYPES[spec.dtype])
        for spec in stage.inputs
        if isinstance(spec, table.TensorSpec)
    }
    outputs = {
        spec.name: (sized(spec), stage_calls.DTYPES.get(spec.dtype, BF16))
        for spec in stage.outputs
        if spec.name != stage.in_place
    }
    asked = {"output_final_state": True, **values, **tensors}
    for spec in stage.outputs:
        if not table.is_present(spec, asked):
            outputs[spec.name] = None
    with ShapesOnly(lib) as shapes:
        lists = stage_calls.packing(stage, cu_seqlens)
        return shapes.workspace_size(stage.op, outputs, **values, **tensors, **lists)


# More than 2**31 elements in a tensor, and more than 2**32 bytes, in every way to get there.
HUGE = {
    "tokens": {"tokens": 2**26 + 1, "key_heads": 3, "value_heads": 3},
    "heads": {"tokens": 2**18, "key_heads": 2**10, "value_heads": 2**10},
    "batch": {"batch": 2**20, "tokens": 2**10 - 1, "key_heads": 2, "value_heads": 4},
    "all": {"batch": 2**10, "tokens": 2**20, "key_heads": 2**5, "value_heads": 2**6},
}


@STAGES
@pytest.mark.parametrize("case", HUGE)
def test_workspace_of_huge_calls(lib, stage, case):
    """All but the rows of bwd_finalize's sums, one a chunk and head, are counted by cores."""
    options = HUGE[case]
    small = workspace_size(lib, stage, tokens=64 * 24, key_heads=2, value_heads=2)
    huge = workspace_size(lib, stage, **options)
    if stage.name != "bwd_finalize":
        assert RESERVED * (stage.name != "fwd_finalize") <= huge < 2**29
        return
    batch = options.get("batch", 1)
    chunks = batch * -(-options["tokens"] // 64)
    sums = chunks * options["value_heads"] * 256 * 4
    assert sums > 2**31
    by_cores = small - 24 * 2 * 256 * 4
    # A group's sums of dq and dk come on top, by cores too.
    assert 0 <= huge - sums - by_cores < 2**27


@STAGES
@pytest.mark.parametrize("layout", ["TND", "BSND"])
def test_workspace_is_by_chunks(lib, stage, layout):
    """127 sequences take what 127 chunks take, however many tokens these hold."""
    if stage.name == "merge_fwd_bwd":
        assert workspace_size(lib, stage, ranks=3) == workspace_size(lib, stage, ranks=9)
        return
    heads = {"key_heads": 1, "value_heads": 1}
    sizes = {
        length: workspace_size(
            lib, stage, layout, cu_seqlens=inputs.packed([length] * 127), **heads
        )
        for length in (1, 16, 32, 64)
    }
    assert len(set(sizes.values())) == 1, sizes
    if stage.name == "bwd_finalize":
        twice = workspace_size(lib, stage, layout, cu_seqlens=inputs.packed([65] * 127), **heads)
        assert twice - sizes[64] == 127 * 256 * 4


def mapped(shape, dtype):
    """Zeros that cost memory only where they are touched."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    no_reserve = 0x4000  # of Linux; Python 3.11 has no name for it
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    return np.frombuffer(mmap.mmap(-1, size, flags), dtype).reshape(shape)


@pytest.mark.parametrize("layout", ["NTD", "TND"])
def test_offsets_beyond_32_bits(lib, layout):
    """The last tokens of a sequence so long that its rows lie beyond 2**31 elements and 2**33
    bytes: a stretch of them has the summary that it has alone."""
    tokens, heads, length = 2**24 + 77, 2, 140
    case = scan_cases.draw(3, tokens=length, heads=heads)
    alone = {
        name: value
        for name, value in test_pre_process_bwd.arguments(case).items()
        if name != "layout"
    }
    want = lib.call(test_pre_process_bwd.OP, layout="BNSD", **alone)["summary"]
    long = dict(alone)
    for name in ("q", "k", "w", "d_o", "dv", "gk"):
        rows = alone[name][0]
        if name == "d_o" and layout == "TND":
            rows = np.swapaxes(rows, 0, 1)
            long[name] = mapped((tokens, heads, 128), rows.dtype)
            long[name][-length:] = rows
        else:
            long[name] = mapped((heads, tokens, 128), rows.dtype)
            long[name][:, -length:] = rows
        assert long[name].size > 2**32
    long["cu_seqlens"] = [tokens - length, tokens]
    got = lib.call(test_pre_process_bwd.OP, layout=layout, **long)["summary"]
    assert got.tobytes() == want.tobytes()
