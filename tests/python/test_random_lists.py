# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Random cu_seqlens and chunk_indices: which are taken, and that the others are refused by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hyper_parallel_kda as kda
from hyper_parallel_kda import stage_table as table
from hyper_parallel_kda.chunk_kda import OP
from tests.support import chain, inputs, packed_lists, profiles, reference, stage_calls
from tests.support.public_calls import to_python

STAGES = [stage for stage in table.STAGES if table.CU_SEQLENS in stage.inputs]
OTHERS = [stage for stage in STAGES if stage is not table.PRE_PROCESS_BWD]
WITH_PAIRS = [stage for stage in STAGES if table.CHUNK_INDICES in stage.inputs]
TOKENS = st.one_of(st.sampled_from([0, 1, 64, 65]), st.integers(0, 140))


def op_call(cu_seqlens):
    x = inputs.make_inputs(0, tokens=cu_seqlens[-1], heads=1)
    named = {name: value for name, value in chain.tensors(x, "TND").items() if value is not None}
    return kda.npu_chunk_kda, {**named, "scale": 1.0, "layout": "TND", **chain.gate_options()}


def call(stage, layout, cu_seqlens):
    """(function, arguments) of a call whose tensors have the sizes that cu_seqlens gives."""
    if stage is OP:
        return op_call(cu_seqlens)
    arguments, _ = stage_calls.complete_call(
        stage, layout=layout, cu_seqlens=cu_seqlens, key_heads=1, value_heads=1
    )
    arguments.pop("chunk_indices", None)
    return getattr(kda, stage.function), to_python(arguments)


def written(numbers):
    """As the fake library writes down an array."""
    return " a" + ",".join(map(str, numbers)) if numbers else " -"


def assert_refused(function, arguments, name):
    with pytest.raises((ValueError, TypeError)) as error:
        function(**arguments)
    text = str(error.value)
    assert text.startswith(f"{function.__name__}: {name}: expected ") and len(text) < 400, text


@pytest.mark.parametrize(
    "stages", [[OP, *OTHERS], [table.PRE_PROCESS_BWD]], ids=["most", "summary"]
)
def test_cu_seqlens_are_taken_if_they_bound_the_tokens(fake, stages):
    """They start at 0, end at T and do not decrease; two of the backward's summary lie in 0..T."""

    @profiles.bounded(100)
    @given(data=st.data())
    def run(data):
        stage = data.draw(st.sampled_from(stages))
        layout = data.draw(st.sampled_from(table.RANK3_LAYOUTS))
        tokens = data.draw(TOKENS)
        numbers = data.draw(packed_lists.bounds(tokens))
        accepted = packed_lists.are_bounds(numbers, tokens, stage is table.PRE_PROCESS_BWD)
        fits = packed_lists.are_bounds(numbers, tokens)
        function, arguments = call(stage, layout, numbers if fits else [0, tokens])
        arguments["cu_seqlens"] = data.draw(packed_lists.passed(numbers))
        if not accepted:
            assert_refused(function, arguments, "cu_seqlens")
            arguments["cu_seqlens"] = numbers = [0, tokens]
        function(**arguments)
        assert written(numbers) + " " in fake.trace + " "

    run()


def test_chunk_indices_are_taken_if_they_are_those_that_are_made(fake):
    @profiles.bounded(100)
    @given(data=st.data())
    def run(data):
        stage = data.draw(st.sampled_from([OP, *WITH_PAIRS]))
        cu_seqlens = data.draw(packed_lists.bounds(data.draw(TOKENS), good=True))
        made = reference.chunk_indices(cu_seqlens)
        numbers = data.draw(packed_lists.pairs(cu_seqlens))
        function, arguments = call(stage, "TND", cu_seqlens)
        arguments["cu_seqlens"] = cu_seqlens
        arguments["chunk_indices"] = data.draw(packed_lists.passed(numbers, width=2))
        if numbers != made:
            assert_refused(function, arguments, "chunk_indices")
            arguments["chunk_indices"] = None
        function(**arguments)
        assert written(cu_seqlens) + written(made) + " " in fake.trace

    run()
