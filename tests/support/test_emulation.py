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
    got, want, limits = emulation.results(x), x.results(), metrics.limits()
    if (gate, decay) == ("softplus", "extreme"):
        # e^-50 is left of the gate's gradient, and nothing of it where terms cancel.
        for name in ("dg", "da_log", "ddt_bias"):
            assert metrics.norm(got.pop(name)) < 1e-10 * x.upstream_norm()
            assert metrics.norm(want.pop(name)) < 1e-10 * x.upstream_norm()
    metrics.check_all(got, want, limits, x.upstream_norm(), x.case)


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
