# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The reference against the token recurrence, and its gradients against complex steps."""

import numpy as np
import pytest

from tests.support import reference
from tests.support.metrics import relative_l2

GATES = {
    "safe": {"use_gate_in_kernel": True, "safe_gate": True, "lower_bound": -5.0},
    "safe -2": {"use_gate_in_kernel": True, "safe_gate": True, "lower_bound": -2.0},
    "softplus": {"use_gate_in_kernel": True, "safe_gate": False},
    "activated": {"use_gate_in_kernel": False},
}
NAMES = ("q", "k", "v", "g", "beta", "a_log", "dt_bias", "initial_state")
GRADS = ("dq", "dk", "dv", "dg", "dbeta", "da_log", "ddt_bias", "dh0")


def small_case(
    seed,
    gate="safe",
    tokens=11,
    batch=2,
    heads=4,
    key_heads=2,
    k_dim=5,
    v_dim=3,
    cu_seqlens=None,
    **options,
):
    rng = np.random.default_rng(seed)
    sequences = reference.sequence_count(batch, cu_seqlens)
    x = {
        "q": rng.standard_normal((batch, key_heads, tokens, k_dim)),
        "k": 0.5 * rng.standard_normal((batch, key_heads, tokens, k_dim)),
        "v": rng.standard_normal((batch, heads, tokens, v_dim)),
        "g": rng.standard_normal((batch, heads, tokens, k_dim)),
        "beta": rng.random((batch, heads, tokens)),
        "a_log": 0.3 * rng.standard_normal(heads),
        "dt_bias": rng.standard_normal((heads, k_dim)),
        "initial_state": rng.standard_normal((sequences, heads, k_dim, v_dim)),
    }
    if gate == "activated":
        x.update(g=-np.abs(x["g"]), a_log=None, dt_bias=None)
    d_o = rng.standard_normal(x["v"].shape)
    dht = rng.standard_normal(x["initial_state"].shape)
    return x, d_o, dht, {**GATES[gate], "cu_seqlens": cu_seqlens, **options}


def call(function, x, scale=0.4, **kwargs):
    named = {n: x[n] for n in ("a_log", "dt_bias", "initial_state")}
    return function(x["q"], x["k"], x["v"], x["g"], x["beta"], scale, **named, **kwargs)


def complex_step_gradient(x, name, d_o, dht, options):
    """d(<d_o, output> + <dht, final_state>) / d x[name], element by element, exact to rounding."""
    grad = np.zeros(x[name].shape)
    for index in np.ndindex(grad.shape):
        moved = x[name].astype(np.complex128)
        moved[index] += 1e-30j
        output, state = call(reference.token_recurrence, {**x, name: moved}, **options)
        grad[index] = (np.sum(d_o * output.imag) + np.sum(dht * state.imag)) / 1e-30
    return grad


CASES = [
    {"gate": "safe"},
    {"gate": "safe -2", "use_qk_l2norm_in_kernel": True},
    {"gate": "softplus", "use_beta_sigmoid_in_kernel": True},
    {
        "gate": "activated",
        "use_qk_l2norm_in_kernel": True,
        "use_beta_sigmoid_in_kernel": True,
        "allow_neg_eigval": True,
    },
    {"gate": "safe", "batch": 1, "tokens": 12, "cu_seqlens": (0, 5, 5, 12)},
    {"gate": "safe", "batch": 1, "tokens": 8, "heads": 2, "key_heads": 2, "use_exp2": False},
    {"gate": "safe", "batch": 1, "tokens": 1, "heads": 1, "key_heads": 1},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_chunked_chain_equals_token_recurrence_and_its_derivatives(case):
    x, d_o, dht, options = small_case(5, **case)
    use_exp2 = options.pop("use_exp2", True)
    want_o, want_state = call(reference.token_recurrence, x, **options)
    got_o, got_state, cache = call(reference.forward, x, chunk_size=4, use_exp2=use_exp2, **options)
    assert relative_l2(got_o, want_o) < 1e-13
    assert relative_l2(got_state, want_state) < 1e-13
    grads = reference.backward(
        cache,
        x["v"],
        x["g"],
        d_o,
        dht,
        0.4,
        4,
        a_log=x["a_log"],
        dt_bias=x["dt_bias"],
        initial_state=x["initial_state"],
        use_exp2=use_exp2,
        **options,
    )
    for name, grad in zip(NAMES, GRADS, strict=True):
        if x[name] is None:
            assert grads[grad] is None
            continue
        want = complex_step_gradient(x, name, d_o, dht, options)
        assert relative_l2(grads[grad], want) < 1e-11, grad


@pytest.mark.parametrize("decay", ["lasting", "mixed", "bound"])
def test_full_size_chain_along_random_directions(decay):
    """K = V = 128 and chunks of 64, where elementwise differentiation would take too long."""
    from tests.support.inputs import make_inputs

    inputs = make_inputs(3, tokens=130, heads=2, decay=decay, initial_state=True)
    got = inputs.results()
    x = {n: getattr(inputs, n) for n in NAMES}
    output, state = call(reference.token_recurrence, x, inputs.scale, **inputs.options)
    assert relative_l2(got["output"], output) < 1e-12
    assert relative_l2(got["final_state"], state) < 1e-12
    rng = np.random.default_rng(0)
    for name, grad in zip(NAMES, GRADS, strict=True):
        direction = rng.standard_normal(x[name].shape)
        moved = x[name] + 1e-30j * direction
        output, state = call(
            reference.token_recurrence, {**x, name: moved}, inputs.scale, **inputs.options
        )
        want = (np.sum(inputs.d_o * output.imag) + np.sum(inputs.dht * state.imag)) / 1e-30
        parts = got[grad] * direction
        spread = np.sqrt(np.sum(np.square(parts)))
        assert abs(np.sum(parts) - want) < 1e-10 * spread, grad


def split(x, cut):
    """The case cut in two along the tokens."""
    per_token = ("q", "k", "v", "g", "beta")
    first = {n: a[:, :, :cut] if n in per_token else a for n, a in x.items()}
    second = {n: a[:, :, cut:] if n in per_token else a for n, a in x.items()}
    return first, second


@pytest.mark.parametrize("gate", list(GATES))
def test_two_ranks_with_summaries_and_merge_equal_the_unsplit_run(gate):
    x, d_o, dht, options = small_case(9, gate, batch=1)
    chain = {"chunk_size": 4, **options}
    whole_o, whole_state, whole_cache = call(reference.forward, x, **chain)
    gate_args = {"a_log": x["a_log"], "dt_bias": x["dt_bias"]}
    whole = reference.backward(
        whole_cache,
        x["v"],
        x["g"],
        d_o,
        dht,
        0.4,
        initial_state=x["initial_state"],
        **gate_args,
        **chain,
    )
    parts = split(x, 6)
    caches = [call(reference.forward, {**p, "initial_state": None}, **chain)[2] for p in parts]
    summaries = np.stack(
        [
            reference.pre_process_fwd(c["kg"], c["w"], c["u"], gk=c["gk"], chunk_size=4)[0]
            for c in caches
        ]
    )
    h0 = [reference.merge_fwd_bwd(x["initial_state"][0], summaries, r, r)[None] for r in (0, 1)]
    runs = [
        call(reference.forward, {**p, "initial_state": s}, **chain)
        for p, s in zip(parts, h0, strict=True)
    ]
    assert relative_l2(np.concatenate([r[0] for r in runs], 2), whole_o) < 1e-13
    assert relative_l2(runs[1][1], whole_state) < 1e-13

    d_os = [d_o[:, :, :6], d_o[:, :, 6:]]
    back = []
    for (_, _, c), d in zip(runs, d_os, strict=True):
        dv_local = reference.bwd_prepare(c["aqk"], c["v_new"], d, c["h"], scale=0.4, chunk_size=4)[
            1
        ]
        back.append(
            reference.pre_process_bwd(
                c["qg"], c["kg"], c["w"], d, dv_local, 0.4, gk=c["gk"], chunk_size=4
            )[0]
        )
    back = np.stack(back)
    dhts = [reference.merge_fwd_bwd(dht[0], back, 1 - r, r, forward=False)[None] for r in (0, 1)]
    grads = [
        reference.backward(c, p["v"], p["g"], d, t, 0.4, initial_state=s, **gate_args, **chain)
        for (_, _, c), p, d, t, s in zip(runs, parts, d_os, dhts, h0, strict=True)
    ]
    for name in ("dq", "dk", "dv", "dg", "dbeta"):
        got = np.concatenate([g[name] for g in grads], 2)
        assert relative_l2(got, whole[name]) < 1e-11, name
    assert relative_l2(grads[0]["dh0"], whole["dh0"]) < 1e-12
    if gate != "activated":
        for name in ("da_log", "ddt_bias"):
            assert relative_l2(grads[0][name] + grads[1][name], whole[name]) < 1e-11, name
    # A summary maps any boundary state: M of the backward is the transpose of the forward's.
    v_dim = x["v"].shape[3]
    assert relative_l2(back[..., v_dim:], np.swapaxes(summaries[..., v_dim:], -1, -2)) < 1e-13


def test_empty_sequences_keep_their_state():
    x, d_o, dht, options = small_case(2, batch=1, tokens=4, cu_seqlens=(0, 0, 4, 4))
    _, state, cache = call(reference.forward, x, chunk_size=4, **options)
    assert np.array_equal(state[[0, 2]], x["initial_state"][[0, 2]])
    summary = reference.pre_process_fwd(
        cache["kg"], cache["w"], cache["u"], gk=cache["gk"], chunk_size=4, cu_seqlens=(0, 0, 4, 4)
    )
    assert np.array_equal(summary[0][..., 3:], np.broadcast_to(np.eye(5), (4, 5, 5)))
    assert not summary[0][..., :3].any()
    grads = reference.backward(
        cache,
        x["v"],
        x["g"],
        d_o,
        dht,
        0.4,
        4,
        a_log=x["a_log"],
        dt_bias=x["dt_bias"],
        initial_state=x["initial_state"],
        **options,
    )
    assert np.array_equal(grads["dh0"][[0, 2]], dht[[0, 2]])


def test_layout_round_trip():
    x = np.arange(2 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    assert reference.to_head_major(x, "BSND").shape == (2, 5, 3, 7)
    for layout in ("BNSD", "BSND"):
        back = reference.from_head_major(reference.to_head_major(x, layout), layout)
        assert np.array_equal(back, x)
    for layout in ("NTD", "TND"):
        head_major = reference.to_head_major(x[0], layout)
        assert head_major.shape == ((1, 3, 5, 7) if layout == "NTD" else (1, 5, 3, 7))
        assert np.array_equal(reference.from_head_major(head_major, layout), x[0])
