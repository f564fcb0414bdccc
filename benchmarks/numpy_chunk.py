# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Chunk KDA with the safe gate in float32 NumPy: what batched BLAS reaches on the same mathematics.

All chunks of all heads go through one batched matmul where the mathematics allows; only the scan
over the chunks is a loop. Head-major tensors, T a multiple of 64. It is a yardstick, not a kernel:
float32 throughout, where the kernels round caches and operands to bf16.
"""

import numpy as np

CHUNK, BLOCK, REFERENCE_ROW = 64, 16, 8
LOG2E = np.float32(1.4426950408889634)


def _t(x):
    return np.swapaxes(x, -1, -2)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _chunked(x):
    """[B, H, T, *] as [B, H, Nc, 64, *]."""
    return x.reshape(x.shape[:2] + (-1, CHUNK) + x.shape[3:])


def _flat(x):
    return x.reshape(x.shape[:2] + (-1,) + x.shape[4:])


def _unit_lower_inverse(lower):
    """(I + lower)^-1 for strictly lower triangular matrices, by halves down to 8 x 8."""
    n = lower.shape[-1]
    if n == 8:
        eye = np.eye(8, dtype=lower.dtype)
        square = lower @ lower
        return (eye - lower) @ (eye + square) @ (eye + square @ square)
    m = n // 2
    out = np.zeros_like(lower)
    out[..., :m, :m] = _unit_lower_inverse(lower[..., :m, :m])
    out[..., m:, m:] = _unit_lower_inverse(lower[..., m:, m:])
    out[..., m:, :m] = -(out[..., m:, m:] @ lower[..., m:, :m]) @ out[..., :m, :m]
    return out


def _blocks(gk):
    """Rows, columns up to their end, and both decay factors of every 16-row block."""
    for start in range(0, CHUNK, BLOCK):
        stop = start + BLOCK
        ref = gk[..., start + REFERENCE_ROW, :][..., None, :]
        rows, columns = slice(start, stop), slice(0, stop)
        yield rows, columns, np.exp2(gk[..., rows, :] - ref), np.exp2(ref - gk[..., columns, :])


_LOWER = np.tril(np.ones((CHUNK, CHUNK), np.float32))
_STRICT = np.tril(_LOWER, -1)


def forward(q, k, v, g, beta, scale, a_log, dt_bias, state=None):
    """output, final_state and the caches of the backward; q and k get their L2 norm, beta its
    sigmoid."""
    f32 = np.float32
    q_rstd, k_rstd = (
        f32(1) / np.sqrt(np.sum(x * x, -1, keepdims=True) + f32(1e-6)) for x in (q, k)
    )
    x = g + dt_bias[None, :, None, :]
    rate = np.exp(a_log)[None, :, None, None]
    y = _sigmoid(rate * x)
    beta = _sigmoid(beta)
    q, k, v_c, b = (
        _chunked(q * q_rstd),
        _chunked(k * k_rstd),
        _chunked(v),
        _chunked(beta)[..., None],
    )
    gk = np.cumsum(_chunked(y) * (f32(-5) * LOG2E), axis=3)
    qk, kk = np.zeros(gk.shape[:4] + (CHUNK,), f32), np.zeros(gk.shape[:4] + (CHUNK,), f32)
    for rows, columns, left, right in _blocks(gk):
        k_right = _t(k[..., columns, :] * right)
        qk[..., rows, columns] = (q[..., rows, :] * left) @ k_right
        kk[..., rows, columns] = (k[..., rows, :] * left) @ k_right
    aqk = np.where(_LOWER > 0, f32(scale) * qk, 0)
    akk = _unit_lower_inverse(np.where(_STRICT > 0, b * kk, 0))
    decay = np.exp2(gk)
    last = gk[..., -1:, :]
    qg, kg = q * decay, k * np.exp2(last - gk)
    folded = akk * _t(b)
    w, u = folded @ (k * decay), folded @ v_c
    whole = np.exp2(last)[..., 0, :, None]
    batch, heads, count = gk.shape[:3]
    s = np.zeros((batch, heads, gk.shape[-1], v.shape[-1]), f32) if state is None else state
    h, v_new = np.empty((batch, heads, count) + s.shape[2:], f32), np.empty_like(v_c)
    for c in range(count):
        h[:, :, c] = s
        v_new[:, :, c] = u[:, :, c] - w[:, :, c] @ s
        s = whole[:, :, c] * s + _t(kg[:, :, c]) @ v_new[:, :, c]
    output = f32(scale) * (qg @ h) + aqk @ v_new
    cache = dict(q=q, k=k, v=v_c, b=b, gk=gk, aqk=aqk, akk=akk, folded=folded, w=w, qg=qg, kg=kg)
    cache.update(decay=decay, whole=whole, h=h, v_new=v_new, x=x, y=y, rate=rate)
    cache.update(q_rstd=q_rstd, k_rstd=k_rstd, scale=f32(scale))
    return _flat(output), s, cache


def backward(c, d_o, dht=None):
    """dq, dk, dv, dg, dbeta, da_log, ddt_bias, dh0."""
    q, k, v, b, gk, scale = c["q"], c["k"], c["v"], c["b"], c["gk"], c["scale"]
    h, v_new, akk, decay = c["h"], c["v_new"], c["akk"], c["decay"]
    d_o = _chunked(d_o)
    d_aqk = scale * _LOWER * (d_o @ _t(v_new))
    dv_scan = _t(c["aqk"]) @ d_o
    r = np.zeros_like(h[:, :, 0]) if dht is None else dht
    dh = np.empty_like(h)
    query = scale * (_t(c["qg"]) @ d_o)
    for n in reversed(range(h.shape[2])):
        dh[:, :, n] = r
        dv_scan[:, :, n] += c["kg"][:, :, n] @ r
        r = c["whole"][:, :, n] * r + query[:, :, n] - _t(c["w"][:, :, n]) @ dv_scan[:, :, n]

    dq = scale * decay * (d_o @ _t(h))
    dk = np.exp2(gk[..., -1:, :] - gk) * (v_new @ _t(dh))
    dgk = q * dq - k * dk
    dgk[..., -1, :] += decay[..., -1, :] * np.sum(h * dh, -1) + np.sum(k * dk, -2)
    dw = -(dv_scan @ _t(h))
    kt = k * decay
    dvb, dkb = _t(akk) @ dv_scan, _t(akk) @ dw
    dv = b * dvb
    dbeta = np.sum(dvb * v, -1) + np.sum(dkb * kt, -1)
    dk += b * decay * dkb
    dgk += b * kt * dkb
    d_inverse = _LOWER * (_t(b) * (dv_scan @ _t(v) + dw @ _t(kt)))
    d_lower = -_STRICT * (_t(akk) @ d_inverse @ _t(akk))

    strict = _STRICT * d_aqk
    q_rows, k_rows, columns_sum = np.empty_like(q), np.empty_like(k), np.zeros_like(k)
    for rows, columns, left, right in _blocks(gk):
        k_right = k[..., columns, :] * right
        d_s, d_l = strict[..., rows, columns], d_lower[..., rows, columns]
        q_rows[..., rows, :] = left * (d_s @ k_right)
        k_rows[..., rows, :] = left * (d_l @ k_right)
        columns_sum[..., columns, :] += right * (
            _t(d_s) @ (q[..., rows, :] * left)
            + _t(d_l) @ (b[..., rows, :] * k[..., rows, :] * left)
        )
    diagonal = np.einsum("...ii->...i", d_aqk)[..., None]
    dq += q_rows + diagonal * k
    dk += b * k_rows + columns_sum + diagonal * q
    dbeta += np.sum(k_rows * k, -1)
    dgk += q * q_rows + k * (b * k_rows - columns_sum)
    da = _flat(np.cumsum(dgk[..., ::-1, :], axis=3)[..., ::-1, :])
    dq, dk = (
        rstd * (d - hat * np.sum(hat * d, -1, keepdims=True))
        for d, hat, rstd in (
            (_flat(dq), _flat(q), c["q_rstd"]),
            (_flat(dk), _flat(k), c["k_rstd"]),
        )
    )
    beta = _flat(b)[..., 0]
    dbeta = _flat(dbeta[..., None])[..., 0] * beta * (1 - beta)
    dg = da * np.float32(-5) * c["y"] * (1 - c["y"]) * c["rate"]
    return {
        "dq": dq,
        "dk": dk,
        "dv": _flat(dv),
        "dg": dg,
        "dbeta": dbeta,
        "da_log": np.sum(dg * c["x"], (0, 2, 3)),
        "ddt_bias": np.sum(dg, (0, 2)),
        "dh0": r,
    }
