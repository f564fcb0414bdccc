# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Random combinations of all options against float64: the output, the states, every gradient."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hyper_parallel_kda import stage_table as table
from tests.support import inputs, metrics, options, profiles
from tests.support.options import FEW_TOKENS, Setup
from tests.system import option_matrix

DECAYS = {gate: list(decays) for gate, decays in inputs.GATES.items()}
TOKENS = st.one_of(st.sampled_from([1, 15, 16, 17, 63, 64, 65, 128]), st.integers(1, 140))
LENGTHS = st.lists(st.one_of(st.sampled_from([0, 1, 64, 65]), st.integers(0, 100)), min_size=1,
                   max_size=5).filter(lambda x: 0 < sum(x) <= 260)  # fmt: skip

# (key heads, value heads a key head). A handful of inner products can all be near zero, where
# relative errors mean nothing: four value heads or more, and eight key heads where there are few
# tokens (dq of one token and key head is one number times k, a sum over its value heads).
HEADS = [(4, 1), (5, 1), (2, 2), (1, 4), (3, 2), (2, 3)]
MANY_HEADS = [(8, 1), (8, 2), (8, 4)]


@st.composite
def setups(draw):
    layout = draw(st.sampled_from(table.LAYOUTS))
    packed = draw(st.booleans())
    gate = draw(st.sampled_from(list(inputs.GATES)))
    tokens = draw(TOKENS)
    lengths = tuple(draw(LENGTHS)) if packed else None
    many = (sum(lengths) if packed else tokens) < FEW_TOKENS
    io = draw(st.sampled_from(["bfloat16", "bfloat16", "float16"]))
    key_heads, group = draw(st.sampled_from(MANY_HEADS if many else HEADS))
    return Setup(
        seed=draw(st.integers(0, 2**31)),
        layout=layout,
        batch=1 if packed or layout in ("NTD", "TND") else draw(st.integers(1, 2)),
        tokens=tokens,
        lengths=lengths,
        given_indices=packed and draw(st.booleans()),
        key_heads=key_heads,
        group=group,
        gate=gate,
        decay=draw(st.sampled_from(DECAYS[gate])),
        lower_bound=draw(st.sampled_from([-5.0, -5.0, -4.99, -2.0, -0.5, -0.05])),
        beta=draw(st.sampled_from(inputs.BETAS)),
        keys=draw(st.sampled_from(["independent"] * 4 + ["parallel"])),
        l2norm=draw(st.booleans()),
        dt_bias=draw(st.sampled_from(["full", "flat", "none"])),
        use_exp2=draw(st.booleans()),
        state=draw(st.sampled_from([None, "float32", io])),
        state_v_first=draw(st.booleans()),
        recompute=draw(st.booleans()),
        precise_relay=draw(st.booleans()),
        io=io,
        gate_dtype=draw(st.sampled_from([io, "float32"])),
        beta_dtype=draw(st.sampled_from([io, "float32"])),
        loss=draw(st.sampled_from(inputs.LOSSES)),
        scale=draw(st.sampled_from([128**-0.5, 128**-0.5, 1.0, -0.3, 1e-3])),
        epsilon=draw(st.sampled_from([1e-6, 1e-6, 0.0, 1.0])),
        activated_safe_gate=draw(st.booleans()),
    )


@profiles.bounded(40)
@given(setups())
def test_random_combinations(setup):
    event(f"{setup.gate} {setup.layout} packed={setup.lengths is not None}")
    comparisons = options.compare(setup)
    assert all(c.passed for c in comparisons), "\n" + metrics.report(comparisons, str(setup))


@st.composite
def setups_of_no_tokens(draw):
    setup = draw(setups())
    lengths = None if setup.lengths is None else (0,) * len(setup.lengths)
    return replace(setup, tokens=0, lengths=lengths)


def state_or_zeros(state, like):
    return np.zeros(like.shape) if state is None else state


@profiles.bounded(30)
@given(setups_of_no_tokens())
def test_no_tokens(setup):
    """Exactly: the state goes through and so does its gradient, and parameters have no other."""
    x = options.inputs_of(setup)
    got, want = options.results(setup, x), options.truth(setup, x)
    state, dht = (state_or_zeros(y, want["final_state"]) for y in (x.initial_state, x.dht))
    want["final_state"] = state
    if setup.state is not None:
        want["dh0"] = x.io.round(dht) if setup.state == setup.io else dht  # the state's dtype
    for name, value in want.items():
        assert (got[name] is None) == (value is None), name
        assert value is None or np.array_equal(got[name], value), name
    assert got["output"].size == got["dg"].size == 0
    assert not any(got[name].any() for name in ("da_log", "ddt_bias") if got[name] is not None)


@pytest.mark.parametrize("name", ["allow_neg_eigval", "float16"])
def test_the_matrix_prints_a_row_for_dense_and_for_packed(name, capsys):
    """docs/accuracy.md has what it prints."""
    assert option_matrix.main(["--seeds", "1", "--only", name]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"| {name}")]
    assert [row.split("|")[2].strip() for row in rows] == ["dense", "packed"]
    for row in rows:
        values = [float(cell) for cell in row.split("|")[3:-1]]
        assert len(values) == len(metrics.CONTRACT_LIMITS) and min(values) > 0


def test_the_matrix_tells_what_is_over(monkeypatch, capsys):
    monkeypatch.setattr(options, "FLOOR", 0.0)
    monkeypatch.setitem(metrics.CONTRACT_LIMITS, "dq", 1e-5)
    assert option_matrix.main(["--seeds", "1", "--only", "float16"]) == 1
    assert "('float16', 'dq')" in capsys.readouterr().out
