# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""A wrong call of a C function and of its Python function are refused with the same words.

"the same": the argument that is named and what was expected of it. Python adds how it knows, in
brackets. Types and missing operands are refused by the code that CANN generates from the op
definition, here by the simulator's: it names the same argument and the same types.
"""

import re

import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda import rules
from hyper_parallel_kda import stage_table as table
from tests.support.aclnn import BF16, AclnnError, Library
from tests.support.public_calls import to_python
from tests.support.stage_calls import complete_call, packing

STAGES = pytest.mark.parametrize("stage", table.STAGES, ids=lambda stage: stage.name)
NAMES = {"FLOAT16": "float16", "BF16": "bfloat16", "FLOAT": "float32"}


@pytest.fixture(scope="module")
def library():
    return Library.kda()


def c_name(name):
    """What the code that CANN generates calls an operand."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def words(text, stage):
    """(argument, what was expected) of a message."""
    generated = re.search(r"(\w+) (?:is null but required|has data type \w+, expected (.+))$", text)
    if generated:
        name = re.sub("(Optional|Ref)$", "", generated[1])
        names = {c_name(spec.name): spec.name for spec in stage.inputs}
        words = set((generated[2] or "").split(" or ")) - {""}
        types = {NAMES[word] for word in words}
        return names[name], " or ".join(sorted(types))
    found = re.search(r"([\w ]+): expected (.+?), got ", text)
    assert found, text
    return found[1].strip(), found[2].split(" (")[0]


def refusals(library, stage, changes):
    """The words of the C function and of the Python function on a good call with the changes."""
    arguments, outputs = complete_call(stage, tokens=17, pairs=True)
    wrong = {**arguments, **changes(arguments)}
    with pytest.raises(AclnnError) as c:
        library.call(stage.op, outputs=outputs, **wrong)
    with pytest.raises((TypeError, ValueError)) as python:
        getattr(kda, stage.function)(**to_python(wrong))
    return words(c.value.message, stage), words(str(python.value), stage)


def tensors(stage):
    return [spec for spec in stage.inputs if isinstance(spec, table.TensorSpec)]


@STAGES
def test_shapes(library, stage):
    first, second, *_ = tensors(stage)
    for spec in tensors(stage):
        for axis, symbol in enumerate(spec.dims):
            if symbol == "R":
                continue  # any number of ranks is good

            def longer(arguments, name=spec.name, axis=axis):
                return {name: np.concatenate([arguments[name]] * 2, axis)}

            c, python = refusals(library, stage, longer)
            assert c == python, (spec.name, axis)
        for change in (lambda a: a[..., None], lambda a: np.asarray(a[0])):

            def other_rank(arguments, name=spec.name, change=change):
                return {name: change(arguments[name])}

            c, python = refusals(library, stage, other_rank)
            assert c == python
            # Where no layout says otherwise, a first tensor without a batch axis is a good one.
            decides = spec is first and not any("layout" in attr.name for attr in stage.attrs)
            assert c[0] == spec.name or (decides and c[0] == second.name), (c, python)


@STAGES
def test_dtypes(library, stage):
    for spec in tensors(stage):
        for dtype in (np.int32, np.float16, np.float32, BF16):
            if (spec.dtype, dtype) in {("io", BF16), ("fp32", np.float32)}:
                continue
            if spec.dtype == "io|fp32" and dtype in (BF16, np.float32):
                continue
            if dtype == np.float16 and spec.dtype != "fp32":
                continue  # good by itself: test_mixed_io_types

            def cast(arguments, name=spec.name, dtype=dtype):
                return {name: arguments[name].astype(dtype)}

            c, python = refusals(library, stage, cast)
            assert c == python, (spec.name, dtype)


@STAGES
def test_mixed_io_types(library, stage):
    """One float16 tensor among bfloat16 ones. The C function says that no list of types fits."""
    for spec in tensors(stage):
        if "io" in spec.dtype:
            arguments, outputs = complete_call(stage, tokens=17, pairs=True)
            arguments[spec.name] = arguments[spec.name].astype(np.float16)
            with pytest.raises(AclnnError):
                library.call(stage.op, outputs=outputs, **arguments)
            with pytest.raises(TypeError, match=r"expected b?float16.* \(as .*\), got b?float16"):
                getattr(kda, stage.function)(**to_python(arguments))


@STAGES
def test_missing_operands(library, stage):
    for spec in tensors(stage):
        if not spec.optional:
            c, python = refusals(library, stage, lambda a, name=spec.name: {name: None})
            assert c[0] == python[0] == spec.name


@STAGES
def test_choices(library, stage):
    for attr in stage.attrs:
        if attr.kind == "str":
            c, python = refusals(library, stage, lambda a, name=attr.name: {name: "SBND"})
            assert c == python == (attr.name, "one of " + ", ".join(attr.choices))


def more_key_heads(arguments):
    names = [name for name in ("q", "k", "q_rstd", "k_rstd", "k_low") if name in arguments]
    return {name: np.concatenate([arguments[name]] * 2, 1) for name in names}


def two_rows(arguments):
    return {
        name: np.concatenate([value] * 2)
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
    }


def packed_rows(arguments, stage):
    return {**two_rows(arguments), **packing(stage, [0, 17])}


NAN, INF = float("nan"), float("inf")
# What breaks a rule: several calls for each (argument, when).
BREAKS = {
    ("chunk_size", ""): [dict(chunk_size=value) for value in (32, 128, 0, -64, 2**40)],
    ("scale", ""): [dict(scale=value) for value in (NAN, INF, -INF)],
    ("epsilon", ""): [dict(epsilon=value) for value in (NAN, INF, -1e-6)],
    ("lower_bound", "safe_gate=True"): [
        dict(lower_bound=value, safe_gate=True) for value in (0.0, 1.0, -5.1, NAN, -INF)
    ],
    ("lower_bound", "safe_gate=False"): [dict(lower_bound=NAN, safe_gate=False)],
    ("allow_neg_eigval", ""): [dict(allow_neg_eigval=True, use_beta_sigmoid_in_kernel=False)],
    ("a_log", "use_gate_in_kernel=True"): [dict(a_log=None)],
    ("q_rstd and k_rstd", ""): [dict(q_rstd=None), dict(k_rstd=None)],
    ("h_low and dh_low", ""): [dict(h_low=None), dict(dh_low=None)],
    ("heads", ""): [more_key_heads],
    ("B", ""): [two_rows],
    ("B", "cu_seqlens given"): [packed_rows],
    ("chunk_indices", "cu_seqlens=None"): [dict(chunk_indices=[0, 0])],
    ("rank", ""): [dict(rank=3), dict(rank=-1), dict(rank=2**62)],
    ("pre_or_post_num_ranks", ""): [
        dict(pre_or_post_num_ranks=3),
        dict(pre_or_post_num_ranks=-1),
        dict(pre_or_post_num_ranks=1, forward=False),
    ],
}


@STAGES
def test_rules(library, stage):
    available = {spec.name for spec in (*stage.inputs, *stage.attrs)}
    available |= {symbol for spec in tensors(stage) for symbol in spec.dims}
    for rule in rules.of(stage.name, available):
        for change in BREAKS[rule.argument, rule.when]:

            def changes(arguments, change=change):
                if change is packed_rows:
                    return change(arguments, stage)
                return change(arguments) if callable(change) else change

            c, python = refusals(library, stage, changes)
            assert c == python, (rule.argument, change)
            assert c[0] == rule.argument
            if isinstance(rule.expected, str):
                assert c[1] == rule.expected.split(" (")[0]


def test_every_rule_belongs_to_some_function_and_is_broken():
    assert set(BREAKS) == {(rule.argument, rule.when) for rule in rules.RULES}
    functions = {
        rule
        for stage in table.STAGES
        for rule in rules.of(
            stage.name,
            {spec.name for spec in (*stage.inputs, *stage.attrs)}
            | {symbol for spec in tensors(stage) for symbol in spec.dims},
        )
    }
    assert functions == set(rules.RULES)
