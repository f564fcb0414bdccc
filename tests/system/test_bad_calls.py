# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Random corruptions of good calls of every public function: an error that names an argument, never
a crash or a number; and the next good call gives the bits that it gave before."""

import functools
import math
import re

import mindspore as ms
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import hyper_parallel_kda as kda
from hyper_parallel_kda import rules
from hyper_parallel_kda import stage_table as table
from hyper_parallel_kda.chunk_kda import OP
from tests.support import chain, inputs, metrics, packed_lists, profiles, reference
from tests.support.io_types import IO_TYPES
from tests.support.public_calls import good_call

FUNCTIONS = (OP, *table.STAGES)
TOKENS = 17
BOUNDS = [0, 5, 5, TOKENS]


def op_call(layout, cu_seqlens, io):
    x = inputs.make_inputs(
        51, tokens=TOKENS, decay="medium", initial_state=True, cu_seqlens=cu_seqlens, io=io
    )
    named = chain.tensors(x, layout)
    arguments = {spec.name: named.get(spec.name) for spec in OP.inputs}
    arguments.update({attr.name: attr.default for attr in OP.attrs})
    arguments.update(chain.gate_options(), scale=x.scale, output_final_state=True, **x.options)
    arguments.update(layout=layout, cu_seqlens=cu_seqlens)
    return kda.npu_chunk_kda, arguments


def stage_call(stage, layout, cu_seqlens, io):
    if stage is OP:
        return op_call(layout, cu_seqlens, io)
    packed = stage.name in rules.PACKED and cu_seqlens is not None
    sizes = dict(cu_seqlens=cu_seqlens) if packed else dict(tokens=TOKENS)
    return good_call(stage, layout=layout, io=io, **sizes)


def arrays(result):
    results = result if isinstance(result, tuple) else (result,)
    return [None if y is None else chain.array(y) for y in results]


def fresh(arguments):
    """merge updates its state: a copy for every call."""
    return {n: v.copy() if n == "state" and isinstance(v, ms.Tensor) else v
            for n, v in arguments.items()}  # fmt: skip


# Layouts, cu_seqlens and types of the good calls.
GOOD = {
    f"{kind} {io}": (layout, cu_seqlens, io)
    for kind, layout, cu_seqlens in (("dense", "BNSD", None), ("packed", "TND", BOUNDS))
    for io in IO_TYPES
}


@pytest.fixture(scope="module")
def good_calls():
    """A stage and a key of GOOD to (function, arguments, results)."""

    @functools.cache
    def made(stage, good):
        function, arguments = stage_call(stage, *GOOD[good])
        return function, arguments, arrays(function(**fresh(arguments)))

    return made


# ------------------------------------------------------------------------------------- corruptions
NOT_TENSORS = (
    1.0,
    "tensor",
    b"tensor",
    [1.0, 2.0],
    {},
    object(),
    np.zeros(3, np.float32),
    ms.Tensor,
)
NOT_LISTS = (
    1,
    2.0,
    "0, 17",
    b"",
    {},
    object(),
    [0.0, 17.0],
    [[0, 17], [0]],
    np.zeros(2),
    ms.Tensor,
)
DTYPES = (ms.int32, ms.int8, ms.float16, ms.float64, ms.bool_, ms.float32, ms.bfloat16)
HUGE = 10**400
WRONG_VALUES = {
    "float": (
        math.nan,
        math.inf,
        -math.inf,
        1e39,
        -1e300,
        1e-300,
        HUGE,
        "1",
        None,
        [1.0],
        1j,
        True,
    ),
    "int": (0, -1, 32, 63, 128, 2**31, 2**63, -HUGE, 64.0, "64", None, True),
    "bool": (0, 1, None, "True", 1.0, [], np.bool_(True)),
    "str": ("", "bnsd", "NSD", b"BNSD", 4, None, ["BNSD"], "BNSD "),
}
# Values of the table that are good somewhere: scale and ranks have no bound above, epsilon none.
GOOD_VALUES = {
    "rank": (0, 1), "pre_or_post_num_ranks": (0, 1, 2), "epsilon": (), "scale": (),
    "lower_bound": (),
}  # fmt: skip


def wrong_dtypes(spec, io):
    io = getattr(ms, io.name)
    good = {"io": {io}, "fp32": {ms.float32}, "io|fp32": {io, ms.float32}}
    return [dtype for dtype in DTYPES if dtype not in good[spec.dtype]]


def another_size(value, axis, change):
    shape = list(value.shape)
    shape[axis] = max(0, shape[axis] + change)
    return ms.ops.zeros(tuple(shape), value.dtype)


@st.composite
def corrupted_tensors(draw, spec, dims, value, io):
    kinds = ["kind", "dtype", "rank", "size"] if value is not None else ["kind"]
    kinds += [] if spec.optional else ["none"]
    kind = draw(st.sampled_from(kinds))
    event(kind)
    if kind == "none":
        return None
    if kind == "kind":
        return draw(st.sampled_from(NOT_TENSORS))
    if kind == "dtype":
        return ms.ops.zeros(value.shape, draw(st.sampled_from(wrong_dtypes(spec, io))))
    if kind == "rank":
        shape = draw(st.sampled_from([(), (0,), value.shape[1:], (*value.shape, 1), (1,) * 8]))
        return ms.ops.zeros(shape, value.dtype)
    # Any number of ranks fits.
    axes = [i for i, dim in enumerate(dims) if dim != "R"]
    axis = draw(st.sampled_from(axes))
    changes = [
        c for c in (-128, -64, -1, 1, 64, 128) if max(0, value.shape[axis] + c) != value.shape[axis]
    ]
    return another_size(value, axis, draw(st.sampled_from(changes)))


@st.composite
def corrupted_lists(draw, stage, name, cu_seqlens):
    """Something that is neither a good list nor None."""
    kind = draw(st.sampled_from(["kind", "numbers", "numbers"]))
    event(f"{name} {kind}")
    if kind == "kind":
        return draw(st.sampled_from(NOT_LISTS))
    if name == "cu_seqlens":
        bad = packed_lists.bounds(TOKENS, good=False).filter(
            lambda x: not packed_lists.are_bounds(x, TOKENS, stage is table.PRE_PROCESS_BWD)
        )
    elif cu_seqlens is None:  # without them nothing is good
        bad = packed_lists.pairs([0, TOKENS])
    else:
        good = reference.chunk_indices(cu_seqlens)
        bad = packed_lists.pairs(cu_seqlens, good=False).filter(lambda x: x != good)
    return draw(packed_lists.passed(draw(bad), width=2 if name == "chunk_indices" else None))


@st.composite
def corruptions(draw, stage, arguments, good):
    """(name, value) that makes a good call a bad one."""
    layout, cu_seqlens, io = GOOD[good]
    spec = draw(st.sampled_from((*stage.inputs, *stage.attrs)))
    if isinstance(spec, table.HostArraySpec):
        return spec.name, draw(corrupted_lists(stage, spec.name, cu_seqlens))
    if isinstance(spec, table.TensorSpec):
        dims = table.placed_dims(spec, arguments, layout in table.RANK3_LAYOUTS)
        value = arguments[spec.name]
        return spec.name, draw(corrupted_tensors(spec, dims, value, io))
    allowed = GOOD_VALUES.get(spec.name, (64,))
    values = [v for v in WRONG_VALUES[spec.kind] if type(v) is bool or v not in allowed]
    event("attribute")
    return spec.name, draw(st.sampled_from(values))


ERROR = re.compile(r"npu_chunk_kda(?:_\w+)?: ([\w ]+): expected .+, got ", re.DOTALL)


@pytest.mark.parametrize("stage", FUNCTIONS, ids=lambda stage: stage.name)
def test_corrupted_calls_are_refused(good_calls, stage):
    names = {spec.name for spec in (*stage.inputs, *stage.attrs)}
    names |= {rule.argument for rule in rules.RULES}

    @profiles.bounded(20)
    @given(data=st.data())
    def run(data):
        good = data.draw(st.sampled_from(list(GOOD)))
        event(good)
        function, arguments, want = good_calls(stage, good)
        bad = dict(arguments)
        for _ in range(data.draw(st.integers(1, 2))):
            name, value = data.draw(corruptions(stage, arguments, good))
            bad[name] = value
        with pytest.raises((TypeError, ValueError)) as error:
            function(**fresh(bad))
        found = ERROR.match(str(error.value))
        assert found, str(error.value)
        assert found[1] in names, str(error.value)
        assert len(str(error.value)) < 400
        for got, expected in zip(arrays(function(**fresh(arguments))), want, strict=True):
            assert (got is None) == (expected is None)
            assert got is None or np.array_equal(got, expected)

    run()


@pytest.mark.parametrize("stage", FUNCTIONS, ids=lambda stage: stage.name)
def test_unknown_and_missing_arguments_are_refused(good_calls, stage):
    function, arguments, _ = good_calls(stage, "packed bfloat16")
    with pytest.raises(TypeError, match="gate_logit_softcap"):
        function(**fresh(arguments), gate_logit_softcap=1.0)
    required = [spec.name for spec in stage.inputs
                if isinstance(spec, table.TensorSpec) and not spec.optional]  # fmt: skip
    for name in required:
        with pytest.raises(TypeError, match=name):
            function(**{n: v for n, v in arguments.items() if n != name})


@profiles.bounded(30)
@given(data=st.data())
def test_random_lists(data):
    """What is taken is what the float64 reference makes of it; tests/python draws many more."""
    tokens = 70
    cu_seqlens = data.draw(packed_lists.bounds(tokens, good=True))
    lists = {"cu_seqlens": cu_seqlens}
    if data.draw(st.booleans()):
        name, cu_seqlens = "cu_seqlens", data.draw(packed_lists.bounds(tokens))
        good = packed_lists.are_bounds(cu_seqlens, tokens)
        lists[name] = data.draw(packed_lists.passed(cu_seqlens))
    else:
        name, numbers = "chunk_indices", data.draw(packed_lists.pairs(cu_seqlens))
        good = numbers == reference.chunk_indices(cu_seqlens)
        lists[name] = data.draw(packed_lists.passed(numbers, width=2))
    event(f"{name} {'taken' if good else 'refused'}")
    if not good:
        x = inputs.make_inputs(52, tokens=tokens)
        with pytest.raises((TypeError, ValueError), match=f"^npu_chunk_kda: {name}: expected "):
            chain.call(x, chain.tensors(x, "TND"), "TND", **lists)
        lists = {"cu_seqlens": [0, tokens]}
    x = inputs.make_inputs(52, tokens=tokens, cu_seqlens=cu_seqlens if good else [0, tokens])
    got = dict(zip(("output", "final_state"), chain.forward(x, "TND", **lists), strict=True))
    want = dict(zip(got, x.forward()[:2], strict=True))
    metrics.check_all(got, want, metrics.limits(), title=x.case)
