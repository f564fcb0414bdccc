# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Random cu_seqlens and chunk_indices, good and bad, and which of them are good."""

import itertools

import mindspore as ms
import numpy as np
from hypothesis import strategies as st

from tests.support import reference

EXTREME = (-(2**63), -(2**31), 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 10**30)
INT64 = np.iinfo(np.int64)


def are_bounds(numbers, tokens, is_stretch=False):
    """Whether they are the cu_seqlens of so many tokens. is_stretch: of a stage that takes two
    entries for any stretch of tokens."""
    if len(numbers) < 2 or any(b < a for a, b in itertools.pairwise(numbers)):
        return False
    if is_stretch and len(numbers) == 2:
        return 0 <= numbers[0] and numbers[1] <= tokens
    return (numbers[0], numbers[-1]) == (0, tokens)


@st.composite
def changed(draw, good, values):
    """A list like the good one, but for one step that leaves it good only by chance."""
    numbers = list(good)
    steps = ["drop", "put", "swap", "set", "add"] if numbers else ["put"]
    step = draw(st.sampled_from(steps))
    at = draw(st.integers(0, max(0, len(numbers) - 1)))
    if step == "drop":
        del numbers[at]
    elif step == "put":
        numbers.insert(at, draw(values))
    elif step == "swap":
        other = draw(st.integers(0, len(numbers) - 1))
        numbers[at], numbers[other] = numbers[other], numbers[at]
    elif step == "set":
        numbers[at] = draw(values)
    else:
        numbers[at] += draw(st.sampled_from([-1, 1]))
    return numbers


@st.composite
def bounds(draw, tokens, good=None):
    """A flat list of integers. good: True for cu_seqlens of so many tokens, False for lists that
    may be anything, None for both."""
    edges = st.sampled_from([-1, 0, 1, tokens - 1, tokens, tokens + 1])
    values = st.one_of(edges, st.integers(-2, tokens + 2), st.sampled_from(EXTREME))
    cuts = draw(st.lists(st.integers(0, tokens), max_size=4))
    fitting = [0, *sorted(cuts), tokens]
    if good is None:
        good = draw(st.booleans())
    if good:
        return fitting
    two = st.lists(values, min_size=2, max_size=2)
    return draw(st.one_of(changed(fitting, values), two, st.lists(values, max_size=5)))


@st.composite
def pairs(draw, cu_seqlens, good=None):
    """A flat list of integers; good as in bounds(), here for chunk_indices."""
    fitting = reference.chunk_indices(cu_seqlens)
    if good is None:
        good = draw(st.booleans())
    if good:
        return fitting
    values = st.one_of(st.integers(-1, len(cu_seqlens)), st.sampled_from(EXTREME))
    another = draw(st.permutations([fitting[i : i + 2] for i in range(0, len(fitting), 2)]))
    kinds = [
        changed(fitting, values),
        st.lists(values, max_size=8),
        st.just(list(itertools.chain(*another))),
    ]
    return draw(st.one_of(kinds))


@st.composite
def passed(draw, numbers, width=None):
    """The numbers in any kind that is taken for a list of integers; width: perhaps as rows."""
    rows = width is not None and len(numbers) % width == 0 and draw(st.booleans())
    fits = all(INT64.min <= x <= INT64.max for x in numbers)
    kinds = ["list", "tuple"] + (["array", "tensor"] if fits else [])
    kind = draw(st.sampled_from(kinds))
    if kind in ("list", "tuple"):
        make = list if kind == "list" else tuple
        if rows:
            numbers = [make(numbers[i : i + width]) for i in range(0, len(numbers), width)]
        return make(numbers)
    types = [np.int64]
    if all(abs(x) < 2**31 for x in numbers):
        types.append(np.int32)
    array = np.array(numbers, draw(st.sampled_from(types)))
    array = array.reshape(-1, width) if rows else array
    return array if kind == "array" else ms.Tensor(array)
