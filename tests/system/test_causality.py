# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What comes after a token changes no bit of the output before it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import chain, inputs

GATES = (
    ("safe", "weak"),
    ("safe", "mixed"),
    ("safe", "bound"),
    ("softplus", "medium"),
    ("activated", "mixed"),
    ("activated", "steps"),
)


@pytest.mark.parametrize("gate, decay", GATES)
def test_later_tokens_change_no_bit_of_earlier_outputs(gate, decay):
    """From every row of a chunk, with a chunk and the start of a third behind it."""
    x = inputs.make_inputs(31, tokens=140, heads=2, gate=gate, decay=decay, initial_state=True)
    other = inputs.make_inputs(32, tokens=140, heads=2, gate=gate, decay=decay)
    clean = chain.forward(x)[0]
    for token in range(64, 129):
        later = {}
        for name in ("q", "k", "v", "g", "beta"):
            later[name] = getattr(x, name).copy()
            later[name][:, :, token:] = getattr(other, name)[:, :, token:]
        got = chain.forward(replace(x, **later))[0]
        assert np.array_equal(clean[:, :, :token], got[:, :, :token]), token
        assert not np.array_equal(clean[:, :, token], got[:, :, token]), token
