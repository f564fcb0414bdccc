# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""No row of fwd_prepare may depend on a later token, not in its last bit."""

from dataclasses import replace

import numpy as np
import pytest

from tests.stages import test_fwd_prepare as stage
from tests.support import inputs

# kg is the one result that looks ahead: it decays every row to the end of its chunk.
CAUSAL = tuple(
    name for name, (_, _, modes) in stage.OUTPUTS.items() if "save" in modes and name != "kg"
)
GATES = (
    ("safe", "weak"),
    ("safe", "mixed"),
    ("safe", "bound"),
    ("softplus", "weak"),
    ("softplus", "mixed"),
    ("activated", "weak"),
    ("activated", "steps"),
)


def changed_from(x, gate, token, seed):
    """The case with every input replaced from that token on."""
    batch, heads, tokens = x.v.shape[:3]
    other = inputs.make_inputs(seed, batch, tokens, heads, gate=gate, decay="mixed")
    later = {}
    for name in ("q", "k", "v", "g", "beta"):
        later[name] = getattr(x, name).copy()
        later[name][:, :, token:] = getattr(other, name)[:, :, token:]
    return replace(x, **later)


@pytest.mark.parametrize("tokens", (64, 75))
@pytest.mark.parametrize("gate, decay", GATES)
def test_later_tokens_change_no_bit_of_earlier_rows(lib, gate, decay, tokens):
    x = inputs.make_inputs(21, tokens=tokens, heads=2, gate=gate, decay=decay)
    clean = stage.run(lib, x, layout="BNSD")
    for token in range(tokens):
        got = stage.run(lib, changed_from(x, gate, token, 22), layout="BNSD")
        for name in CAUSAL:
            before, after = clean[name][:, :, :token], got[name][:, :, :token]
            assert np.array_equal(before.view(np.uint8), after.view(np.uint8)), (name, token)
            # A chunk's first row of akk is the identity's; strong decay leaves some rows zero.
            if decay == "weak" and (name != "akk" or token % 64):
                assert not np.array_equal(clean[name][:, :, token], got[name][:, :, token]), name
