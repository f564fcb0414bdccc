# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What the stages of the reference share: layouts, chunk walks, decays and element-wise terms."""

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


def chunk_indices(cu_seqlens, chunk_size=64):
    """Flat (sequence, chunk) pairs, as the stages take them."""
    return [
        number
        for n, (start, stop) in enumerate(pairwise(cu_seqlens))
        for chunk in range(-(-int(stop - start) // chunk_size))
        for number in (n, chunk)
    ]


def expand_heads(x, groups):
    """Value head hv reads query/key head hv // groups."""
    return np.repeat(x, groups, axis=1) if groups > 1 else x


def wide(x):
    """At least float64; None stays None."""
    return None if x is None else np.asarray(x, np.result_type(np.asarray(x).dtype, np.float64))


def transpose(x):
    return np.swapaxes(x, -1, -2)


def decay_factor(x, use_exp2):
    return np.exp2(x) if use_exp2 else np.exp(x)


def pair_decay(gk, use_exp2=True):
    """[..., i, j, K]: the decay from token j to token i, 0 for j > i. Subtracts before it
    exponentiates: the two factors alone overflow under strong decay."""
    rows = gk.shape[-2]
    kept = np.tril(np.ones((rows, rows), bool))[..., None]
    return decay_factor(
        np.where(kept, gk[..., :, None, :] - gk[..., None, :, :], -np.inf), use_exp2
    )


# --------------------------------------------------------------------------- element-wise pieces
def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else np.exp(-np.logaddexp(0, -x))


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
