# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The nine stages of Chunk KDA, whole chains and the token recurrence, in plain NumPy.

Written for reading: one function a stage, formulas as in docs/stages.md, everything in the dtype of
the inputs' promotion with float64 (complex inputs stay complex, so that derivatives of the token
recurrence can be taken by complex steps). Tensors are head-major: [B, H, T, *]; chunk states are
[B, Nc, Hv, K, V]. Packed sequences have B = 1 and cu_seqlens. Any K, V and chunk size work.

Options have the names of the public API. `gk` is in log2 units with use_exp2, else in nats.
"""

from collections import namedtuple
from itertools import pairwise

import numpy as np

LOG2E = 1.4426950408889634

Chunk = namedtuple("Chunk", "sequence batch slot start stop first last")


# ---------------------------------------------------------------------------- layouts and chunks
def to_head_major(x, layout):
    """[B,T,H,...] (BSND) or [T,H,...] (TND) to [B,H,T,...]; rank-3 layouts gain B = 1."""
    if layout in ("TND", "NTD"):
        x = x[None]
    return np.swapaxes(x, 1, 2) if layout in ("BSND", "TND") else x


def from_head_major(x, layout):
    """The inverse of to_head_major."""
    if layout in ("BSND", "TND"):
        x = np.swapaxes(x, 1, 2)
    return x[0] if layout in ("TND", "NTD") else x


def chunks(batch, tokens, chunk_size=64, cu_seqlens=None):
    """Every chunk, sequence by sequence, in time order. Chunks restart at each sequence's start.
    `slot` indexes h and dh: per batch entry when dense, over all sequences when packed."""
    if cu_seqlens is None:
        spans = [(b, 0, tokens) for b in range(batch)]
    else:
        spans = [(0, int(a), int(b)) for a, b in pairwise(cu_seqlens)]
    out, slot = [], 0
    for n, (b, start, stop) in enumerate(spans):
        slot = 0 if cu_seqlens is None else slot
        for lo in range(start, stop, chunk_size):
            hi = min(stop, lo + chunk_size)
            out.append(Chunk(n, b, slot, lo, hi, lo == start, hi == stop))
            slot += 1
    return out


def sequence_count(batch, cu_seqlens=None):
    return batch if cu_seqlens is None else len(cu_seqlens) - 1


def chunk_count(tokens, chunk_size=64, cu_seqlens=None):
    """Slots of h and dh per batch entry."""
    if cu_seqlens is None:
        return -(-tokens // chunk_size)
    return sum(-(-int(b - a) // chunk_size) for a, b in pairwise(cu_seqlens))


def expand_heads(x, groups):
    """Value head hv reads query/key head hv // groups."""
    return np.repeat(x, groups, axis=1) if groups > 1 else x


def _wide(x):
    """At least float64; None stays None."""
    return None if x is None else np.asarray(x, np.result_type(np.asarray(x).dtype, np.float64))


def _transpose(x):
    return np.swapaxes(x, -1, -2)


def _decay(x, use_exp2):
    return np.exp2(x) if use_exp2 else np.exp(x)


def pair_decay(gk, use_exp2=True):
    """[..., i, j, K]: the decay from token j to token i, 0 for j > i. Subtracts before it
    exponentiates: the two factors alone overflow under strong decay."""
    rows = gk.shape[-2]
    kept = np.tril(np.ones((rows, rows), bool))[..., None]
    return _decay(np.where(kept, gk[..., :, None, :] - gk[..., None, :, :], -np.inf), use_exp2)


# --------------------------------------------------------------------------- element-wise pieces
def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else 0.5 * (1 + np.tanh(0.5 * x))


def softplus(x):
    return np.log(1 + np.exp(x)) if np.iscomplexobj(x) else np.logaddexp(0, x)


def l2norm(x, epsilon):
    """x_hat, rstd over the last axis."""
    rstd = (np.sum(x * x, -1) + epsilon) ** -0.5
    return x * rstd[..., None], rstd


def l2norm_grad(dx_hat, x_hat, rstd):
    return rstd[..., None] * (dx_hat - x_hat * np.sum(x_hat * dx_hat, -1, keepdims=True))


def _gate_terms(g, a_log, dt_bias):
    heads, channels = g.shape[1], g.shape[3]
    x = g if dt_bias is None else g + np.reshape(dt_bias, (1, heads, 1, channels))
    return x, np.exp(a_log).reshape(1, heads, 1, 1)


def gate(g, a_log=None, dt_bias=None, *, use_gate_in_kernel=True, safe_gate=True, lower_bound=-5.0):
    """The activated log-decay a <= 0 in nats."""
    if not use_gate_in_kernel:
        return g
    x, rate = _gate_terms(g, a_log, dt_bias)
    return lower_bound * sigmoid(rate * x) if safe_gate else -rate * softplus(x)


def gate_grad(
    da, g, a_log=None, dt_bias=None, *, use_gate_in_kernel=True, safe_gate=True, lower_bound=-5.0
):
    """dg, da_log, ddt_bias from the gradient of the activated gate."""
    if not use_gate_in_kernel:
        return da, None, None
    x, rate = _gate_terms(g, a_log, dt_bias)
    if safe_gate:
        y = sigmoid(rate * x)
        dg = da * lower_bound * y * (1 - y) * rate
        da_log = np.sum(dg * x, (0, 2, 3))
    else:
        dg = -rate * sigmoid(x) * da
        da_log = np.sum(da * -rate * softplus(x), (0, 2, 3))
    return dg, da_log, np.sum(dg, (0, 2))


def effective_beta(beta, *, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False):
    if not use_beta_sigmoid_in_kernel:
        return beta
    return (2.0 if allow_neg_eigval else 1.0) * sigmoid(beta)


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
    q, k, v, g, beta, a_log, dt_bias = map(_wide, (q, k, v, g, beta, a_log, dt_bias))
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
        decay = _decay(sums, use_exp2)
        gk[at] = sums
        aqk[at][..., :rows] = scale * np.tril((key_pairs @ qc[..., None])[..., 0])
        akk[at][..., :rows] = inverse
        w[at] = inverse @ (bc * kc * decay)
        u[at] = inverse @ (bc * v[at])
        qg[at] = qc * decay
        kg[at] = kc * _decay(sums[:, -1:] - sums, use_exp2)
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
    kg, w, u, gk = map(_wide, (kg, w, u, gk))
    batch, heads, tokens, k_dim = kg.shape
    v_dim = u.shape[3]
    out = np.zeros((sequence_count(batch, cu_seqlens), heads, k_dim, v_dim + k_dim), kg.dtype)
    out[..., v_dim:] = np.eye(k_dim)
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        decay = _decay(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        e, m = out[c.sequence][..., :v_dim], out[c.sequence][..., v_dim:]
        out[c.sequence] = np.concatenate(
            [
                decay * e + _transpose(kg[at]) @ (u[at] - w[at] @ e),
                decay * m - _transpose(kg[at]) @ (w[at] @ m),
            ],
            -1,
        )
    return out


def fwd_h(kg, w, u, *, gk, initial_state=None, chunk_size=64, cu_seqlens=None, use_exp2=True):
    """Stage 3. h (the state at each chunk's entry), v_new, final_state."""
    kg, w, u, gk, initial_state = map(_wide, (kg, w, u, gk, initial_state))
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
        decay = _decay(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        state[c.sequence] = decay * s + _transpose(kg[at]) @ v_new[at]
    return h, v_new, state


def fwd_finalize(qg_scaled, aqk, v_new, h, *, chunk_size=64, cu_seqlens=None):
    """Stage 4. o, head-major."""
    qg_scaled, aqk, v_new, h = map(_wide, (qg_scaled, aqk, v_new, h))
    batch, _, tokens, _ = qg_scaled.shape
    o = np.zeros(v_new.shape, np.result_type(v_new, aqk))
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        o[at] = qg_scaled[at] @ h[c.batch, c.slot] + aqk[at][..., : c.stop - c.start] @ v_new[at]
    return o


def bwd_prepare(aqk, v_new, d_o, h, *, scale, chunk_size=64, cu_seqlens=None):
    """Stage 5. d_aqk (gradient of the unscaled masked score), dv_local, dq_raw = d_o h^T."""
    aqk, v_new, d_o, h = map(_wide, (aqk, v_new, d_o, h))
    batch, _, tokens, _ = d_o.shape
    d_aqk, dv_local = np.zeros_like(aqk), np.zeros_like(d_o)
    dq_raw = np.zeros(d_o.shape[:3] + (h.shape[3],))
    for c in chunks(batch, tokens, chunk_size, cu_seqlens):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        d_aqk[at][..., :rows] = scale * np.tril(d_o[at] @ _transpose(v_new[at]))
        dv_local[at] = _transpose(aqk[at][..., :rows]) @ d_o[at]
        dq_raw[at] = d_o[at] @ _transpose(h[c.batch, c.slot])
    return d_aqk, dv_local, dq_raw


def pre_process_bwd(
    qg, kg, w, d_o, dv_local, scale, *, gk, chunk_size=64, cu_seqlens=None, use_exp2=True
):
    """Stage 6, for every sequence: [N, Hv, K, V+K] = [Eb | Mb]. The stage returns entry 0."""
    qg, kg, w, d_o, dv_local, gk = map(_wide, (qg, kg, w, d_o, dv_local, gk))
    batch, heads, tokens, k_dim = kg.shape
    v_dim = d_o.shape[3]
    out = np.zeros((sequence_count(batch, cu_seqlens), heads, k_dim, v_dim + k_dim))
    out[..., v_dim:] = np.eye(k_dim)
    for c in reversed(chunks(batch, tokens, chunk_size, cu_seqlens)):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        decay = _decay(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        e, m = out[c.sequence][..., :v_dim], out[c.sequence][..., v_dim:]
        x = dv_local[at] + kg[at] @ e
        out[c.sequence] = np.concatenate(
            [
                decay * e + scale * _transpose(qg[at]) @ d_o[at] - _transpose(w[at]) @ x,
                decay * m - _transpose(w[at]) @ (kg[at] @ m),
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
    qg, kg, w, d_o, dv_local, gk, dht = map(_wide, (qg, kg, w, d_o, dv_local, gk, dht))
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
        decay = _decay(gk[c.batch, :, c.stop - 1], use_exp2)[..., None]
        grad[c.sequence] = (
            decay * r + scale * _transpose(qg[at]) @ d_o[at] - _transpose(w[at]) @ dv_scan[at]
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
        _wide,
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
        decay = _decay(gk[at], use_exp2)
        k_decayed = kc * decay

        # Between chunks: o reads the entry state, the exit state reads kg.
        dq_c = scale * decay * dq_raw[at]
        dk_c = _decay(gk[at][:, -1:] - gk[at], use_exp2) * (v_new[at] @ _transpose(state_grad))
        dgk = qc * dq_c - kc * dk_c
        dgk[:, -1] += decay[:, -1] * np.sum(state * state_grad, -1) + np.sum(kc * dk_c, 1)

        # w and u.
        dw = -x @ _transpose(state)
        dvb, dkb = _transpose(inverse) @ x, _transpose(inverse) @ dw
        dv[at] = bc * dvb
        dbeta_c = np.sum(dvb * vc, -1) + np.sum(dkb * k_decayed, -1)
        dk_c = dk_c + bc * decay * dkb
        dgk = dgk + bc * k_decayed * dkb

        # The inverse.
        d_inverse = np.tril(x @ _transpose(bc * vc) + dw @ _transpose(bc * k_decayed))
        d_lower = -np.tril(_transpose(inverse) @ d_inverse @ _transpose(inverse), -1)

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
        da[at] = np.cumsum(dgk[:, ::-1], axis=1)[:, ::-1]

    dq, dk = (x.reshape(batch, key_heads, groups, tokens, k_dim).sum(2) for x in (dq, dk))
    if q_rstd is not None:
        dq, dk = l2norm_grad(dq, q_hat, _wide(q_rstd)), l2norm_grad(dk, k_hat, _wide(k_rstd))
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
    state, summaries = _wide(state).copy(), _wide(summaries)
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
    d_o = np.zeros_like(cache["v_new"]) if d_o is None else _wide(d_o)
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
        _wide, (q, k, v, g, beta, a_log, dt_bias, initial_state)
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
