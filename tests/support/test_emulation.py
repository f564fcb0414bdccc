# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The emulation's algebra in float64, and what its switches are there to show."""

from dataclasses import replace

import pytest

from tests.support import emulation, inputs, metrics

SWITCHES = [
    {},
    {"fold_beta": False},
    {"regroup": False},
    {"exclude_diagonal": False},
    {"paired_gate": False},
    {"paired_gate": False, "split_intra": True},
    {"row_blocks": False},
    {"fresh_operands": False},
]


@pytest.mark.parametrize("gate", list(inputs.GATES))
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_without_rounding_every_switch_is_the_same_mathematics(switches, gate):
    x = inputs.make_inputs(1, tokens=85, gate=gate, decay="mixed", initial_state=True)
    want = x.results()
    got = emulation.results(x, replace(emulation.EXACT, **switches))
    for name, value in want.items():
        if value is not None:
            assert metrics.relative_l2(got[name], value) < 1e-12, name


EVERY_DECAY = [(gate, decay) for gate, decays in inputs.GATES.items() for decay in decays]


@pytest.mark.parametrize("tokens", [1, 2, 17, 64, 65, 130])
@pytest.mark.parametrize("gate, decay", EVERY_DECAY)
def test_rounding_stays_within_the_contract(tokens, gate, decay):
    """Many heads, so that one unlucky inner product does not stand for the whole tensor."""
    x = inputs.make_inputs(
        tokens, batch=2, tokens=tokens, heads=4, gate=gate, decay=decay, initial_state=True
    )
    metrics.check_all(
        emulation.results(x), x.results(), metrics.limits(), x.upstream_norm(), x.case
    )


def worst(name, search, **switches):
    numerics = replace(emulation.REAL, **switches)
    values = []
    for seed in inputs.worst_seeds(search, count=400, keep=3):
        x = inputs.final_state_only(seed)
        values.append(metrics.relative_l2(emulation.results(x, numerics)[name], x.results()[name]))
    return max(values)


def test_regrouping_and_folding_cure_the_known_failure():
    assert worst("dk", "|sum_v v_last|") < 0.01
    assert worst("dk", "|sum_v v_last|", regroup=False, fold_beta=False) > 0.04


def test_precise_relay_keeps_sums_that_nearly_cancel():
    for name, search in (("dv", "|sum_k k_last|"), ("dg", "|sum_v v_(last-1)|")):
        assert worst(name, search, precise_relay=True) < 0.01
        assert worst(name, search) > 0.05


def test_intra_chunk_matrices_need_exact_operands_or_paired_gate_terms():
    x = inputs.make_inputs(1, tokens=65, heads=1, decay="strong", loss="output")
    want = x.results()

    def ddt_bias(**switches):
        got = emulation.results(x, replace(emulation.REAL, **switches))
        return metrics.relative_l2(got["ddt_bias"], want["ddt_bias"])

    assert ddt_bias() < 0.01
    assert ddt_bias(paired_gate=False, split_intra=True) < 0.01
    assert ddt_bias(paired_gate=False) > 0.02
    assert ddt_bias(paired_gate=False, exclude_diagonal=False) > 0.2


@pytest.mark.parametrize("gate", tuple(inputs.GATES))
@pytest.mark.parametrize("key_heads", (1, 2))
def test_groups_of_value_heads(gate, key_heads):
    """The algebra without rounding, and that rounding costs a group no more than a single head."""
    x = inputs.make_inputs(
        3, tokens=85, heads=6, key_heads=key_heads, gate=gate, decay="mixed", initial_state=True
    )
    want = {name: value for name, value in x.results().items() if value is not None}
    got = emulation.results(x, emulation.EXACT)
    for name, value in want.items():
        assert metrics.relative_l2(got[name], value) < 1e-11, name
    metrics.check_all(emulation.results(x), want, metrics.limits(), x.upstream_norm(), x.case)
