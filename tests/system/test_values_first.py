# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""npu_chunk_kda with states [V, K]: the same bits, transposed."""

from dataclasses import replace

import pytest

from tests.support import chain, inputs
from tests.support.metrics import same_bits
from tests.support.reference import transpose


@pytest.mark.parametrize("tokens", (1, 65, 130))
def test_same_bits_as_with_keys_first(tokens):
    x = inputs.make_inputs(31 + tokens, tokens=tokens, heads=3, initial_state=True)
    want = chain.results(x)
    got = chain.results(
        replace(x, initial_state=transpose(x.initial_state), dht=transpose(x.dht)),
        state_v_first=True,
    )
    for name in ("final_state", "dh0"):
        got[name] = transpose(got[name])
    same_bits(got, want)
