# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What comes after a token changes no bit of the output before it, nor of gradients that no loss
behind it reaches."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import chain, inputs, metrics, options, reference, sizes

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


TOKENS = 140
FINE = {"gate_dtype": "float32"}
HALF = {"io": "float16", "gate_dtype": "float16"}
SETUPS = {
    "core": FINE,
    "packed, groups": {
        "layout": "NTD", "lengths": (5, 0, 75, 60), "key_heads": 1, "group": 2, **FINE,
    },
    "packed, groups, softplus": {
        "layout": "TND", "lengths": (64, 1, 75), "key_heads": 1, "group": 3, "gate": "softplus",
        "use_exp2": False,
    },
    "softplus, mixed": {"layout": "BNSD", "gate": "softplus", "decay": "mixed"},
    "activated, steps, precise_relay": {
        "gate": "activated", "decay": "steps", "precise_relay": True, "recompute": True,
    },
    "activated, mixed, values first": {
        "layout": "NTD", "gate": "activated", "decay": "mixed", "state_v_first": True,
    },
    "precise_relay, neg_eigval": {
        "layout": "BNSD", "precise_relay": True, "beta": "neg_eigval", "decay": "mixed",
        **FINE,
    },
    "float16": HALF,
    "float16, packed, neg_eigval, precise_relay": {
        "layout": "TND", "lengths": (70, 70), "key_heads": 1, "group": 2, "decay": "bound",
        "beta": "neg_eigval", "precise_relay": True, **HALF,
    },
    "float16, activated": {"layout": "BNSD", "gate": "activated", "decay": "mixed", **HALF},
}  # fmt: skip


def draw(name):
    """A set-up, its inputs, others to put behind a token, and a few tokens to do that at: the first
    ones of a chunk and of a row block, and one anywhere."""
    setup = options.Setup(
        seed=inputs.fresh_seed(), tokens=TOKENS, state="float32", loss="output", **SETUPS[name]
    )
    x = options.inputs_of(setup)
    other = options.inputs_of(replace(setup, seed=setup.seed + 1))
    anywhere = np.random.default_rng(setup.seed).integers(1, TOKENS)
    return setup, x, other, (64, 80, int(anywhere))


def with_later(x, other, token):
    later = {}
    for name in chain.PER_TOKEN:
        later[name] = getattr(x, name).copy()
        later[name][:, :, token:] = getattr(other, name)[:, :, token:]
    return replace(x, **later)


@pytest.mark.parametrize("name", SETUPS)
def test_outputs_with_other_options(name):
    setup, x, other, tokens = draw(name)

    def output(x):
        found = options.call(setup, x, options.named_tensors(setup, x))[0]
        return reference.to_head_major(chain.array(found), chain.output_layout(setup.layout))

    clean = output(x)
    for token in tokens:
        got, where = output(with_later(x, other, token)), (setup, token)
        assert np.array_equal(clean[:, :, :token], got[:, :, :token]), where
        assert not np.array_equal(clean[:, :, token], got[:, :, token]), where


# The backward of a bounded gate takes gk of a row in the middle of a row block off both factors of
# its pairs. Where a token in the block may change that row, gradients before it differ by roundings
# of its factors. Over 500 cases: dg, in float32, by up to 4e-6, da_log by 8e-6 of its terms, and of
# dq and dk up to 0.13 % of the numbers by a rounding step.
ROW_BLOCK = 16
ROUNDINGS = {"dq": 1e-4, "dk": 1e-4, "dg": 1e-4, "da_log": 1e-4, "ddt_bias": 1e-4}
STEPPED = 0.01


def difference(grad, now, before, x, dg):
    """The share of the numbers a rounding step away, and the relative L2 of the others."""
    if grad in ("dq", "dk"):
        return metrics.apart(now, before, x.io)
    size = sizes.da_log(x, dg) if grad == "da_log" else 0.0
    return 0.0, metrics.relative_l2(now, before, size=size)


@pytest.mark.parametrize("name", SETUPS)
def test_gradients_that_no_loss_behind_reaches(name):
    """The loss is on the output before a token: what comes from there on has gradients of exactly
    zero, and changes no bit of the others."""
    setup, x, other, tokens = draw(name)
    for token in tokens:
        d_o, where = x.d_o.copy(), (setup, token)
        d_o[:, :, token:] = 0
        part = replace(x, d_o=d_o)
        want = options.results(setup, part)
        got = options.results(setup, with_later(part, other, token))
        starts = np.array(x.cu_seqlens or [0])
        in_block = (token - starts[starts <= token][-1]) % ROW_BLOCK
        exact = setup.gate != "safe" or setup.io == "float16" or in_block == 0
        for grad in ("dq", "dk", "dv", "dg", "dbeta", "da_log", "ddt_bias", "dh0"):
            if want[grad] is None:
                continue
            before, now = want[grad], got[grad]
            if grad in ("dq", "dk", "dv", "dg", "dbeta"):
                assert not before[:, :, token:].any() and not now[:, :, token:].any(), (grad, where)
                before, now = before[:, :, :token], now[:, :, :token]
            assert before.any(), (grad, where)
            if exact or grad not in ROUNDINGS:
                assert np.array_equal(before, now), (grad, where)
            else:
                share, rest = difference(grad, now, before, part, want["dg"])
                found = (grad, share, rest, where)
                assert share <= STEPPED and rest <= ROUNDINGS[grad], found
