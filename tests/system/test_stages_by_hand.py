# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The nine stages composed by hand: the whole op, and one sequence split over two ranks."""

import mindspore as ms
import numpy as np
import pytest

import hyper_parallel_kda as kda
from hyper_parallel_kda.stage_table import FWD_PREPARE
from tests.support import chain, inputs, metrics, reference
from tests.system import grid

PER_TOKEN = ("dq", "dk", "dv", "dbeta", "dg")
CUT = 64 + 64  # ranks cut a sequence on the chunk grid


def prepare(x, named, layout, mode="save"):
    slots = kda.npu_chunk_kda_fwd_prepare(
        named["q"],
        named["k"],
        named["v"],
        named["g"],
        named["beta"],
        x.scale,
        layout=layout,
        a_log=named["a_log"],
        dt_bias=named["dt_bias"],
        backward_mode=mode,
        **x.options,
        **chain.gate_options(),
    )
    return dict(zip((spec.name for spec in FWD_PREPARE.outputs), slots, strict=False))


def forward(c, state, layout="BSND"):
    h, v_new, final_state = kda.npu_chunk_kda_fwd_h(
        c["kg"], c["w"], c["u"], gk=c["gk"], initial_state=state, output_final_state=True
    )
    o = kda.npu_chunk_kda_fwd_finalize(c["qg_scaled"], c["aqk"], v_new, h, output_layout=layout)
    return o, h, v_new, final_state


def backward(x, named, c, h, v_new, d_o, state, dht, layout, unscaled=True):
    """Gradients by name. unscaled=False: (q = qg_scaled, scale = 1), for caches without qg."""
    q, scale = (c["qg"], x.scale) if unscaled else (c["qg_scaled"], 1.0)
    d_aqk, dv_local, dq_raw = kda.npu_chunk_kda_bwd_prepare(
        c["aqk"], v_new, d_o, h, scale=x.scale, layout=layout
    )
    dh, dh0, dv_scan = kda.npu_chunk_kda_bwd_dhu(
        q, c["kg"], c["w"], d_o, dv_local, scale, gk=c["gk"], h0=state, dht=dht, layout=layout
    )
    grads = kda.npu_chunk_kda_bwd_finalize(
        c["q_hat"],
        c["k_hat"],
        named["v"],
        c["gk"],
        named["g"],
        c["beta_eff"],
        named["a_log"],
        named["dt_bias"],
        c["akk"],
        v_new,
        h,
        dh,
        dv_scan,
        d_aqk,
        dq_raw,
        scale=x.scale,
        q_rstd=c["q_rstd"],
        k_rstd=c["k_rstd"],
        output_layout=layout,
        input_layout=layout,
        use_beta_sigmoid_in_kernel=x.options["use_beta_sigmoid_in_kernel"],
        **chain.gate_options(),
    )
    names = (*PER_TOKEN, "da_log", "ddt_bias")
    return dict(zip(names, grads, strict=True), dh0=dh0)


def arrays(grads, layout):
    out = {}
    for name, value in grads.items():
        value = chain.array(value)
        if value is not None and name in PER_TOKEN:
            value = reference.to_head_major(value, layout)
        out[name] = value
    return out


def upstream(x, layout):
    return chain.tensor(reference.from_head_major(x.d_o, layout), ms.bfloat16), chain.tensor(x.dht)


@pytest.mark.parametrize("layout", grid.LAYOUTS)
@pytest.mark.parametrize("l2norm", [False, True])
def test_stages_by_hand_give_the_bits_of_the_op(layout, l2norm):
    x = inputs.make_inputs(3, batch=2, tokens=85, decay="mixed", l2norm=l2norm, initial_state=True)
    named = chain.tensors(x, layout)
    d_o, dht = upstream(x, layout)
    c = prepare(x, named, layout)
    assert (c["q_rstd"] is not None) == l2norm
    o, h, v_new, final_state = forward(c, named["initial_state"])
    grads = arrays(
        backward(x, named, c, h, v_new, d_o, named["initial_state"], dht, layout), layout
    )
    whole = chain.results(x, layout)
    assert np.array_equal(np.swapaxes(chain.array(o), 1, 2), whole["output"])
    assert np.array_equal(chain.array(final_state), whole["final_state"])
    for name, value in grads.items():
        if name == "dbeta":  # the op returns beta's dtype, the stage fp32
            assert metrics.relative_l2(value, whole[name]) < 4e-3
        else:
            assert np.array_equal(value, whole[name]), name


def test_backward_modes_select_outputs_and_nothing_else():
    x = inputs.make_inputs(4, tokens=70, decay="medium")
    named = chain.tensors(x)
    full = prepare(x, named, "BSND")
    base = {"gk", "aqk", "w", "u", "kg", "qg_scaled"}
    recompute = base | {"q_hat", "k_hat", "q_rstd", "k_rstd", "beta_eff"}
    for mode, names in (("none", base), ("forward", base | {"akk"}), ("recompute", recompute)):
        got = prepare(x, named, "BSND", mode)
        assert {name for name, value in got.items() if value is not None} == names, mode
        for name in names:
            assert np.array_equal(chain.array(got[name]), chain.array(full[name])), (mode, name)


def test_backward_from_the_scaled_query_cache():
    """A forward that kept akk but not qg: stages 6 and 7 take (qg_scaled, scale = 1)."""
    x = inputs.make_inputs(6, tokens=130, decay="medium", initial_state=True)
    layout = "BNSD"
    named = chain.tensors(x, layout)
    d_o, dht = upstream(x, layout)
    c = prepare(x, named, layout)
    _, h, v_new, _ = forward(c, named["initial_state"])
    grads = backward(
        x, named, c, h, v_new, d_o, named["initial_state"], dht, layout, unscaled=False
    )
    want = x.results()
    got = {**arrays(grads, layout), "output": want["output"], "final_state": want["final_state"]}
    metrics.check_all(got, want, grid.limits(x, want), x.upstream_norm(), x.case)


def halves(x):
    """The case of each rank: its tokens, no state of its own."""
    from dataclasses import replace

    parts = []
    for span in (slice(0, CUT), slice(CUT, None)):
        cut = {n: getattr(x, n)[:, :, span] for n in ("q", "k", "v", "g", "beta", "d_o")}
        parts.append(replace(x, **cut))
    return parts


@pytest.mark.parametrize("layout", grid.LAYOUTS)
@pytest.mark.parametrize("decay", ["lasting", "mixed"])
def test_two_ranks_with_summaries_and_merge_equal_the_unsplit_run(decay, layout):
    x = inputs.make_inputs(8, tokens=CUT + 65, decay=decay, initial_state=True)
    want = x.results()
    parts = halves(x)
    named = [chain.tensors(p, layout) for p in parts]
    caches = [prepare(p, n, layout) for p, n in zip(parts, named, strict=True)]

    def gathered(summaries):
        return chain.tensor(np.stack([chain.array(s).reshape(s.shape[-3:]) for s in summaries]))

    summaries = gathered(
        kda.npu_chunk_kda_pre_process_fwd(c["kg"], c["w"], c["u"], gk=c["gk"])[0] for c in caches
    )
    states = []
    for rank in (0, 1):
        state = chain.tensor(x.initial_state[0])
        merged = kda.npu_chunk_kda_merge_fwd_bwd(state, summaries, rank, rank)
        assert np.array_equal(chain.array(merged), chain.array(state)), "merge works in place"
        states.append(merged.expand_dims(0))
    runs = [forward(c, s, layout) for c, s in zip(caches, states, strict=True)]

    uppers = [upstream(p, layout)[0] for p in parts]
    back = []
    for c, (_, h, v_new, _), d_o in zip(caches, runs, uppers, strict=True):
        dv_local = kda.npu_chunk_kda_bwd_prepare(
            c["aqk"], v_new, d_o, h, scale=x.scale, layout=layout
        )[1]
        back.append(
            kda.npu_chunk_kda_pre_process_bwd(
                c["qg"], c["kg"], c["w"], d_o, dv_local, x.scale, gk=c["gk"], layout=layout
            )
        )
    back = gathered(back)
    grads = []
    for rank in (0, 1):
        dht = kda.npu_chunk_kda_merge_fwd_bwd(
            chain.tensor(x.dht[0]), back, 1 - rank, rank, forward=False
        ).expand_dims(0)
        _, h, v_new, _ = runs[rank]
        grads.append(
            arrays(
                backward(
                    parts[rank],
                    named[rank],
                    caches[rank],
                    h,
                    v_new,
                    uppers[rank],
                    states[rank],
                    dht,
                    layout,
                ),
                layout,
            )
        )

    got = {
        "output": np.concatenate(
            [reference.to_head_major(chain.array(r[0]), layout) for r in runs], 2
        ),
        "final_state": chain.array(runs[1][3]),
        "dh0": grads[0]["dh0"],
    }
    for name in PER_TOKEN:
        got[name] = np.concatenate([g[name] for g in grads], 2)
    for name in ("da_log", "ddt_bias"):
        got[name] = grads[0][name] + grads[1][name]
    metrics.check_all(got, want, grid.limits(x, want), x.upstream_norm(), x.case)

    # Both runs round the state at every chunk, but the split one enters its second rank with a
    # state that the summaries carried: twice the 0.4 % measured between two such runs.
    whole = chain.results(x, layout)
    for name in ("output", "final_state", "dq", "dk", "dv", "dg"):
        assert metrics.relative_l2(got[name], whole[name]) < 8e-3, name
