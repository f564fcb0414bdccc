# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The nine stages of Chunk KDA, whole chains and the token recurrence, in plain NumPy.

Written for reading: one function a stage, formulas as in docs/stages.md, everything in the dtype of
the inputs' promotion with float64 (complex inputs stay complex, so that derivatives of the token
recurrence can be taken by complex steps). Tensors are head-major: [B, H, T, *]; chunk states are
[B, Nc, Hv, K, V]. Packed sequences have B = 1 and cu_seqlens. Any K, V and chunk size work.

Options have the names of the public API. `gk` is in log2 units with use_exp2, else in nats.
"""

import numpy as np

from tests.support.pieces import (  # noqa: F401  (part of this module's interface)
    LOG2E,
    Chunk,
    chunk_count,
    chunk_indices,
    chunks,
    decay_factor,
    effective_beta,
    expand_heads,
    from_head_major,
    gate,
    gate_grad,
    l2norm,
    l2norm_grad,
    pair_decay,
    sequence_count,
    sigmoid,
    softplus,
    to_head_major,
    transpose,
    wide,
)


# ------------------------------------------------------------------------------------ the stages
def fwd_prepare(
    q,
    k,
    v,
    g,
    beta,
    scale,
    chunk_size=64,
    *,
    a_log=None,
    dt_bias=None,
    cu_seqlens=None,
    epsilon=1e-6,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=True,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    safe_gate=True,
    lower_bound=-5.0,
    use_exp2=True,
):
    """Stage 1. All thirteen outputs by name; q_rstd and k_rstd are None without the L2 norm."""
    q, k, v, g, beta, a_log, dt_bias = map(wide, (q, k, v, g, beta, a_log, dt_bias))
    batch, _, tokens, _ = q.shape
    groups = v.shape[1] // q.shape[1]
    q_hat, k_hat, q_rstd, k_rstd = q, k, None, None
    if use_qk_l2norm_in_kernel:
        q_hat, q_rstd = l2norm(q, epsilon)
        k_hat, k_rstd = l2norm(k, epsilon)
    beta_eff = effective_beta(
        beta,
        use_beta_sigmoid_in_kernel=use_beta_sigmoid_in_kernel,
        allow_neg_eigval=allow_neg_eigval,
    )
    a = gate(
        g,
        a_log,
        dt_bias,
        use_gate_in_kernel=use_gate_in_kernel,
        safe_gate=safe_gate,
        lower_bound=lower_bound,
    )
    q_all, k_all = expand_heads(q_hat, groups), expand_heads(k_hat, groups)

    gk = np.zeros_like(a)
    w, qg, kg = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    u = np.zeros(v.shape, a.dtype)
    aqk = np.zeros(v.shape[:3] + (chunk_size,), a.dtype)
    akk = np.zeros_like(aqk)
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        sums = np.cumsum(a[at], axis=1) * (LOG2E if use_exp2 else 1.0)
        qc, kc, bc = q_all[at], k_all[at], beta_eff[at][..., None]
        key_pairs = kc[:, None, :, :] * pair_decay(sums, use_exp2)  # k_j 2^(gk_i - gk_j)
        lower = np.tril(bc * (key_pairs @ kc[..., None])[..., 0], -1)
        inverse = np.linalg.inv(np.eye(rows) + lower)
        decay = decay_factor(sums, use_exp2)
        gk[at] = sums
        aqk[at][..., :rows] = scale * np.tril((key_pairs @ qc[..., None])[..., 0])
        akk[at][..., :rows] = inverse
        w[at] = inverse @ (bc * kc * decay)
        u[at] = inverse @ (bc * v[at])
        qg[at] = qc * decay
        kg[at] = kc * decay_factor(sums[:, -1:] - sums, use_exp2)
    return {
        "gk": gk,
        "aqk": aqk,
        "akk": akk,
        "w": w,
        "u": u,
        "qg": qg,
        "kg": kg,
        "qg_scaled": scale * qg,
        "q_hat": q_hat,
        "k_hat": k_hat,
        "q_rstd": q_rstd,
        "k_rstd": k_rstd,
        "beta_eff": beta_eff,
    }


def pre_process_fwd(kg, w, u, *, gk, cu_seqlens=None, chunk_size=64, use_exp2=True):
    """Stage 2. [N, Hv, K, V+K] = [E | M]: the state at the end is M times the state at the start,
    plus E. An empty sequence has E = 0, M = I."""
    kg, w, u, gk = map(wide, (kg, w, u, gk))
    batch, heads, tokens, k_dim = kg.shape
    v_dim = u.shape[3]
    out = np.zeros((sequence_count(batch, cu_seqlens), heads, k_dim, v_dim + k_dim), kg.dtype)
    out[..., v_dim:] = np.eye(k_dim)
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        decay = decay_factor(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        e, m = out[c.sequence][..., :v_dim], out[c.sequence][..., v_dim:]
        out[c.sequence] = np.concatenate(
            [
                decay * e + transpose(kg[at]) @ (u[at] - w[at] @ e),
                decay * m - transpose(kg[at]) @ (w[at] @ m),
            ],
            -1,
        )
    return out


def fwd_h(kg, w, u, *, gk, initial_state=None, chunk_size=64, cu_seqlens=None, use_exp2=True):
    """Stage 3. h (the state at each chunk's entry), v_new, final_state."""
    kg, w, u, gk, initial_state = map(wide, (kg, w, u, gk, initial_state))
    batch, heads, tokens, k_dim = kg.shape
    v_dim = u.shape[3]
    dtype = np.result_type(*(x.dtype for x in (kg, w, u, gk, initial_state) if x is not None))
    state = np.zeros((sequence_count(batch, cu_seqlens), heads, k_dim, v_dim), dtype)
    if initial_state is not None:
        state[...] = initial_state
    h = np.zeros((batch, chunk_count(tokens, chunk_size, cu_seqlens), heads, k_dim, v_dim), dtype)
    v_new = np.zeros(u.shape, dtype)
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        s = state[c.sequence]
        h[c.batch, c.slot] = s
        v_new[at] = u[at] - w[at] @ s
        decay = decay_factor(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        state[c.sequence] = decay * s + transpose(kg[at]) @ v_new[at]
    return h, v_new, state


def fwd_finalize(qg_scaled, aqk, v_new, h, *, chunk_size=64, cu_seqlens=None):
    """Stage 4. o, head-major."""
    qg_scaled, aqk, v_new, h = map(wide, (qg_scaled, aqk, v_new, h))
    batch, _, tokens, _ = qg_scaled.shape
    o = np.zeros(v_new.shape, np.result_type(v_new, aqk))
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        o[at] = qg_scaled[at] @ h[c.batch, c.slot] + aqk[at][..., : c.stop - c.start] @ v_new[at]
    return o


def bwd_prepare(aqk, v_new, d_o, h, *, scale, chunk_size=64, cu_seqlens=None):
    """Stage 5. d_aqk (gradient of the unscaled masked score), dv_local, dq_raw = d_o h^T."""
    aqk, v_new, d_o, h = map(wide, (aqk, v_new, d_o, h))
    batch, _, tokens, _ = d_o.shape
    d_aqk, dv_local = np.zeros_like(aqk), np.zeros_like(d_o)
    dq_raw = np.zeros(d_o.shape[:3] + (h.shape[3],))
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        d_aqk[at][..., :rows] = scale * np.tril(d_o[at] @ transpose(v_new[at]))
        dv_local[at] = transpose(aqk[at][..., :rows]) @ d_o[at]
        dq_raw[at] = d_o[at] @ transpose(h[c.batch, c.slot])
    return d_aqk, dv_local, dq_raw


def pre_process_bwd(
    qg, kg, w, d_o, dv_local, scale, *, gk, chunk_size=64, cu_seqlens=None, use_exp2=True
):
    """Stage 6, for every sequence: [N, Hv, K, V+K] = [Eb | Mb]. The stage returns entry 0."""
    qg, kg, w, d_o, dv_local, gk = map(wide, (qg, kg, w, d_o, dv_local, gk))
    batch, heads, tokens, k_dim = kg.shape
    v_dim = d_o.shape[3]
    out = np.zeros((sequence_count(batch, cu_seqlens), heads, k_dim, v_dim + k_dim))
    out[..., v_dim:] = np.eye(k_dim)
    for c in reversed(chunks(batch, tokens, chunk_size, cu_seqlens)):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        decay = decay_factor(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        e, m = out[c.sequence][..., :v_dim], out[c.sequence][..., v_dim:]
        x = dv_local[at] + kg[at] @ e
        out[c.sequence] = np.concatenate(
            [
                decay * e + scale * transpose(qg[at]) @ d_o[at] - transpose(w[at]) @ x,
                decay * m - transpose(w[at]) @ (kg[at] @ m),
            ],
            -1,
        )
    return out


def bwd_dhu(
    qg,
    kg,
    w,
    d_o,
    dv_local,
    scale,
    *,
    gk,
    h0=None,
    dht=None,
    chunk_size=64,
    cu_seqlens=None,
    use_exp2=True,
):
    """Stage 7. dh (gradient of the state at each chunk's exit), dh0 (None without h0), dv_scan."""
    qg, kg, w, d_o, dv_local, gk, dht = map(wide, (qg, kg, w, d_o, dv_local, gk, dht))
    batch, heads, tokens, k_dim = kg.shape
    v_dim = d_o.shape[3]
    grad = np.zeros((sequence_count(batch, cu_seqlens), heads, k_dim, v_dim))
    if dht is not None:
        grad[...] = dht
    dh = np.zeros((batch, chunk_count(tokens, chunk_size, cu_seqlens), heads, k_dim, v_dim))
    dv_scan = np.zeros_like(d_o)
    for c in reversed(chunks(batch, tokens, chunk_size, cu_seqlens)):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        r = grad[c.sequence]
        dh[c.batch, c.slot] = r
        dv_scan[at] = dv_local[at] + kg[at] @ r
        decay = decay_factor(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        grad[c.sequence] = (
            decay * r + scale * transpose(qg[at]) @ d_o[at] - transpose(w[at]) @ dv_scan[at]
        )
    return dh, None if h0 is None else grad, dv_scan


def bwd_finalize(
    q_hat,
    k_hat,
    v,
    gk,
    raw_g,
    beta_eff,
    a_log,
    dt_bias,
    akk,
    v_new,
    h,
    dh,
    dv_scan,
    d_aqk,
    dq_raw,
    *,
    scale,
    lower_bound=-5.0,
    chunk_size=64,
    safe_gate=True,
    use_gate_in_kernel=True,
    use_exp2=True,
    q_rstd=None,
    k_rstd=None,
    cu_seqlens=None,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
):
    """Stage 8. dq, dk, dv, dbeta, dg, da_log, ddt_bias, head-major."""
    (
        q_hat,
        k_hat,
        v,
        gk,
        raw_g,
        beta_eff,
        a_log,
        dt_bias,
        akk,
        v_new,
        h,
        dh,
        dv_scan,
        d_aqk,
        dq_raw,
    ) = map(
        wide,
        (
            q_hat,
            k_hat,
            v,
            gk,
            raw_g,
            beta_eff,
            a_log,
            dt_bias,
            akk,
            v_new,
            h,
            dh,
            dv_scan,
            d_aqk,
            dq_raw,
        ),
    )
    batch, key_heads, tokens, k_dim = q_hat.shape
    heads = v.shape[1]
    groups = heads // key_heads
    q_all, k_all = expand_heads(q_hat, groups), expand_heads(k_hat, groups)
    dq, dk, da = np.zeros_like(gk), np.zeros_like(gk), np.zeros_like(gk)
    dv, dbeta = np.zeros_like(v), np.zeros_like(beta_eff)
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        qc, kc, vc, bc = q_all[at], k_all[at], v[at], beta_eff[at][..., None]
        inverse = akk[at][..., :rows]
        x, state, state_grad = dv_scan[at], h[c.batch, c.slot], dh[c.batch, c.slot]
        decay = decay_factor(gk[at], use_exp2)
        k_decayed = kc * decay

        # Between chunks: o reads the entry state, the exit state reads kg.
        dq_c = scale * decay * dq_raw[at]
        dk_c = decay_factor(gk[at][:, -1:] - gk[at], use_exp2) * (v_new[at] @ transpose(state_grad))
        # A row that wrote into the exit state decays from the next row on: k dk1 of the rows before
        # t belong to da_t. As -k dk1 in dgk and the sum of all in its last row, as the chain rule
        # has it, they would leave nothing of small terms, not even in float64.
        written = np.zeros_like(dk_c)
        written[:, 1:] = np.cumsum(kc * dk_c, axis=1)[:, :-1]
        dgk = qc * dq_c
        dgk[:, -1] += decay[:, -1] * np.sum(state * state_grad, -1)

        # w and u.
        dw = -x @ transpose(state)
        dvb, dkb = transpose(inverse) @ x, transpose(inverse) @ dw
        dv[at] = bc * dvb
        dbeta_c = np.sum(dvb * vc, -1) + np.sum(dkb * k_decayed, -1)
        dk_c = dk_c + bc * decay * dkb
        dgk = dgk + bc * k_decayed * dkb

        # The inverse.
        d_inverse = np.tril(x @ transpose(bc * vc) + dw @ transpose(bc * k_decayed))
        d_lower = -np.tril(transpose(inverse) @ d_inverse @ transpose(inverse), -1)

        # Pairs inside the chunk. Diagonal pairs have no decay, so they never reach the gate.
        pairs = pair_decay(gk[at], use_exp2)
        d_scores = d_aqk[at][..., :rows]
        d_strict = np.tril(d_scores, -1)
        d_diagonal = np.einsum("hii->hi", d_scores)[..., None]
        q_rows = np.einsum("hij,hjd,hijd->hid", d_strict, kc, pairs)
        k_rows = np.einsum("hij,hjd,hijd->hid", d_lower, kc, pairs)
        k_columns = np.einsum("hij,hid,hijd->hjd", d_strict, qc, pairs)
        k_columns = k_columns + np.einsum("hij,hid,hijd->hjd", d_lower, bc * kc, pairs)
        dq[at] = dq_c + q_rows + d_diagonal * kc
        dk[at] = dk_c + bc * k_rows + k_columns + d_diagonal * qc
        dbeta[at] = dbeta_c + np.sum(k_rows * kc, -1)
        dgk = dgk + qc * q_rows + kc * (bc * k_rows - k_columns)
        da[at] = np.cumsum(dgk[:, ::-1], axis=1)[:, ::-1] + written

    dq, dk = (x.reshape(batch, key_heads, groups, tokens, k_dim).sum(2) for x in (dq, dk))
    if q_rstd is not None:
        dq, dk = l2norm_grad(dq, q_hat, wide(q_rstd)), l2norm_grad(dk, k_hat, wide(k_rstd))
    if use_beta_sigmoid_in_kernel:
        dbeta = dbeta * beta_eff * (1 - beta_eff / (2.0 if allow_neg_eigval else 1.0))
    dg, da_log, ddt_bias = gate_grad(
        da,
        raw_g,
        a_log,
        dt_bias,
        safe_gate=safe_gate,
        use_gate_in_kernel=use_gate_in_kernel,
        lower_bound=lower_bound,
    )
    return dq, dk, dv, dbeta, dg, da_log, ddt_bias


def merge_fwd_bwd(state, summaries, pre_or_post_num_ranks, rank, *, forward=True):
    """Stage 9. A new array: `state` carried through the ranks before (after) this one."""
    state, summaries = wide(state).copy(), wide(summaries)
    v_dim = state.shape[-1]
    n = pre_or_post_num_ranks
    for r in range(rank - n, rank) if forward else range(rank + n, rank, -1):
        state = summaries[r][..., v_dim:] @ state + summaries[r][..., :v_dim]
    return state


# ---------------------------------------------------------------------------------- whole chains
GATE_OPTIONS = ("use_gate_in_kernel", "safe_gate", "lower_bound")
BETA_OPTIONS = ("use_beta_sigmoid_in_kernel", "allow_neg_eigval")


def _pick(options, names):
    return {name: options[name] for name in names if name in options}


def forward(
    q, k, v, g, beta, scale, chunk_size=64, *, initial_state=None, cu_seqlens=None, **options
):
    """output (head-major), final_state, and everything the backward needs."""
    cache = fwd_prepare(q, k, v, g, beta, scale, chunk_size, cu_seqlens=cu_seqlens, **options)
    shared = {"chunk_size": chunk_size, "cu_seqlens": cu_seqlens}
    exp2 = _pick(options, ("use_exp2",))
    cache["h"], cache["v_new"], final_state = fwd_h(
        cache["kg"],
        cache["w"],
        cache["u"],
        gk=cache["gk"],
        initial_state=initial_state,
        **shared,
        **exp2,
    )
    output = fwd_finalize(cache["qg_scaled"], cache["aqk"], cache["v_new"], cache["h"], **shared)
    return output, final_state, cache


def backward(
    cache,
    v,
    g,
    d_o,
    dht,
    scale,
    chunk_size=64,
    *,
    initial_state=None,
    cu_seqlens=None,
    a_log=None,
    dt_bias=None,
    **options,
):
    """The eight gradients by name. d_o or dht may be None (= zero)."""
    shared = {"chunk_size": chunk_size, "cu_seqlens": cu_seqlens}
    exp2 = _pick(options, ("use_exp2",))
    d_o = np.zeros_like(cache["v_new"]) if d_o is None else wide(d_o)
    d_aqk, dv_local, dq_raw = bwd_prepare(
        cache["aqk"], cache["v_new"], d_o, cache["h"], scale=scale, **shared
    )
    dh, dh0, dv_scan = bwd_dhu(
        cache["qg"],
        cache["kg"],
        cache["w"],
        d_o,
        dv_local,
        scale,
        gk=cache["gk"],
        h0=initial_state,
        dht=dht,
        **shared,
        **exp2,
    )
    grads = bwd_finalize(
        cache["q_hat"],
        cache["k_hat"],
        v,
        cache["gk"],
        g,
        cache["beta_eff"],
        a_log,
        dt_bias,
        cache["akk"],
        cache["v_new"],
        cache["h"],
        dh,
        dv_scan,
        d_aqk,
        dq_raw,
        scale=scale,
        q_rstd=cache["q_rstd"],
        k_rstd=cache["k_rstd"],
        **shared,
        **exp2,
        **_pick(options, GATE_OPTIONS + BETA_OPTIONS),
    )
    names = ("dq", "dk", "dv", "dbeta", "dg", "da_log", "ddt_bias")
    return dict(zip(names, grads, strict=True), dh0=dh0)


def token_recurrence(
    q,
    k,
    v,
    g,
    beta,
    scale,
    *,
    initial_state=None,
    cu_seqlens=None,
    a_log=None,
    dt_bias=None,
    epsilon=1e-6,
    use_qk_l2norm_in_kernel=False,
    **options,
):
    """The definition of KDA, one token after the other: output (head-major) and final_state."""
    q, k, v, g, beta, a_log, dt_bias, initial_state = map(
        wide, (q, k, v, g, beta, a_log, dt_bias, initial_state)
    )
    if use_qk_l2norm_in_kernel:
        q, k = l2norm(q, epsilon)[0], l2norm(k, epsilon)[0]
    batch, key_heads, tokens, k_dim = q.shape
    heads, v_dim = v.shape[1], v.shape[3]
    q, k = expand_heads(q, heads // key_heads), expand_heads(k, heads // key_heads)
    beta = effective_beta(beta, **_pick(options, BETA_OPTIONS))
    decay = np.exp(gate(g, a_log, dt_bias, **_pick(options, GATE_OPTIONS)))
    dtype = np.result_type(*(x for x in (q, k, v, decay, beta, initial_state) if x is not None))
    sequences = sequence_count(batch, cu_seqlens)
    state = np.zeros((sequences, heads, k_dim, v_dim), dtype)
    if initial_state is not None:
        state[...] = initial_state
    output = np.zeros((batch, heads, tokens, v_dim), dtype)
    for n in range(sequences):
        b = n if cu_seqlens is None else 0
        span = (0, tokens) if cu_seqlens is None else (int(cu_seqlens[n]), int(cu_seqlens[n + 1]))
        s = state[n]
        for t in range(*span):
            s = decay[b, :, t, :, None] * s
            kt = k[b, :, t, :, None]
            error = v[b, :, t] - np.sum(kt * s, -2)
            s = s + beta[b, :, t, None, None] * kt * error[:, None, :]
            output[b, :, t] = scale * np.sum(q[b, :, t, :, None] * s, -2)
        state[n] = s
    return output, state
