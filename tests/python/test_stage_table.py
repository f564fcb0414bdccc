# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The stage table is consistent in itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hyper_parallel_kda import stage_table as table

DIMS = {"B", "T", "Hk", "Hv", "K", "V", "C", "Nc", "N", "R", "V+K"}
DTYPES = {"io", "fp32", "io|fp32"}
SIZES = {"B": 2, "T": 65, "Hk": 3, "Hv": 6, "K": 128, "V": 128, "C": 64, "Nc": 2, "N": 2, "R": 4}


def tensors(stage):
    inputs = [spec for spec in stage.inputs if isinstance(spec, table.TensorSpec)]
    return inputs + list(stage.outputs)


@pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
def test_stage_is_well_formed(stage):
    attr_names = {attr.name for attr in stage.attrs}
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", stage.op).lower()
    assert snake == stage.kernel
    for spec in tensors(stage):
        assert set(spec.dims) <= DIMS
        assert spec.dtype in DTYPES or spec.dtype.startswith("=") and stage.input(spec.dtype[1:])
        assert spec.layout is None or spec.layout in attr_names
        assert table.output_shape(
            spec, {**dict.fromkeys(attr_names, False), **layouts(stage)}, SIZES
        )
    for spec in stage.outputs:
        assert spec.optional == (spec.present is not None) == bool(spec.when)
    names = [spec.name for spec in stage.inputs] + [attr.name for attr in stage.attrs]
    assert len(set(names)) == len(names)
    assert (stage.in_place is None) or stage.in_place in names


def layouts(stage):
    return {attr.name: attr.default for attr in stage.attrs if "layout" in attr.name}


def test_order_of_dims_in_every_layout():
    dims = ("B", "Hv", "T", "K")
    assert table.ordered_dims(dims, "BNSD") == dims
    assert table.ordered_dims(dims, "BSND") == ("B", "T", "Hv", "K")
    assert table.ordered_dims(dims, "NTD") == ("Hv", "T", "K")
    assert table.ordered_dims(dims, "TND") == ("T", "Hv", "K")
    assert table.ordered_dims(("B", "Hv", "T"), "BSND") == ("B", "T", "Hv")
    assert table.ordered_dims(("N", "Hv", "K", "V"), v_first=True) == ("N", "Hv", "V", "K")
    with pytest.raises(ValueError, match="BNSD, BSND, NTD, TND"):
        table.ordered_dims(dims, "SBND")


@pytest.mark.parametrize(
    "mode, l2norm, slots",
    [
        ("none", True, {0, 1, 3, 4, 6, 7}),
        ("forward", True, {0, 1, 2, 3, 4, 6, 7}),
        ("recompute", True, {0, 1, 3, 4, 6, 7, 8, 9, 10, 11, 12}),
        ("recompute", False, {0, 1, 3, 4, 6, 7, 8, 9, 12}),
        ("save", True, set(range(13))),
        ("save", False, set(range(13)) - {10, 11}),
    ],
)
def test_backward_mode_selects_slots(mode, l2norm, slots):
    values = {"backward_mode": mode, "use_qk_l2norm_in_kernel": l2norm, "precise_relay": False}
    outputs = table.FWD_PREPARE.outputs
    assert {i for i, spec in enumerate(outputs) if table.is_present(spec, values)} == slots
    values["precise_relay"] = True
    lows = {13, 14} if {9, 11} <= slots else {13}
    assert {i for i, spec in enumerate(outputs) if table.is_present(spec, values)} == slots | lows


def test_table_needs_neither_mindspore_nor_the_rest_of_the_package():
    path = Path(table.__file__)
    text = subprocess.run(
        [sys.executable, "-S", "-I", str(path)], check=True, capture_output=True, text=True
    ).stdout
    assert text == table.markdown()
    assert text.count("### ") == 9
