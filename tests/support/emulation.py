# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The kernels' rounding in NumPy: bf16 at every cache write and matrix operand (float16, where
`io` of the numerics says so), fp32 accumulation.

It follows the kernels' algorithm (16-row blocks with one reference row each, or levels for gates
without a bound, beta folded into the left operand, the regrouped state term, gate terms paired with
the operands), and every one of these choices is a switch, so that a table can show what each of
them buys. Dense, head-major, bf16 tensors held as float32. The stages' names and results are those
of the reference.
"""

from dataclasses import dataclass

import numpy as np

from tests.support import reference
from tests.support.io_types import BFLOAT16, IoType

BLOCK = 16
REFERENCE_ROW = 8  # of the backward


def _t(x):
    return np.swapaxes(x, -1, -2)


def level_products(a):
    """The products that cover the lower triangle of a chunk under a gate without a bound: (rows,
    columns, pairs kept, row factor, column factor). Every factor runs from a row to a boundary
    between the two rows of its pairs, so none exceeds one. a: log2 decay of each row."""
    tokens = a.shape[1]
    column = np.ones_like(a)  # of the blocks so far, down to the end of the last one
    for start in range(0, tokens, BLOCK):
        stop = min(tokens, start + BLOCK)
        block, place = slice(start, stop), np.arange(stop - start)
        sums = np.cumsum(a[:, block], axis=1, dtype=a.dtype)
        if start:
            kept = np.ones((stop - start, start), bool)
            yield block, slice(0, start), kept, np.exp2(sums), column[:, :start]
        for half in (8, 4, 2, 1):
            group, upper = place // (2 * half), place // half % 2 == 1
            middle = np.minimum(group * 2 * half + half - 1, stop - start - 1)
            decay = np.exp2(
                np.where(upper[:, None], sums - sums[:, middle], sums[:, middle] - sums)
            )
            kept = (group[:, None] == group) & upper[:, None] & ~upper
            yield block, block, kept, decay, decay
        yield block, block, np.eye(stop - start, dtype=bool), np.ones_like(sums), np.ones_like(sums)
        column[:, :start] *= np.exp2(sums[:, -1:])
        column[:, block] = np.exp2(sums[:, -1:] - sums)


@dataclass(frozen=True)
class Numerics:
    """What the emulated kernels do; the defaults are the real ones."""

    fold_beta: bool = True  # u = (Akk diag(beta)) v instead of Akk (beta v)
    split_inverse: bool = True  # Akk diag(beta) as hi + lo there if beta may exceed 1
    regroup: bool = True  # v_new R^T as Ab (v R^T) - (Ab kt)(H R^T)
    exclude_diagonal: bool = True  # diagonal pairs never reach the gate's gradient
    split_intra: bool = False  # hi + lo operands in the intra-chunk backward
    split_scores: bool = True  # the scores' gradients as hi + lo in these products
    paired_gate: bool = True  # gate terms from the rounded operands of each product
    fresh_operands: bool = True  # forward operands from fp32 q_hat, k_hat, not the stored ones
    precise_relay: bool = (
        False  # the op's option: hi + lo for what carries a state and its gradient
    )
    row_blocks: bool = True  # factors around a reference row, else exact pair differences
    rounding: bool = True  # False: float64 throughout, to test the algebra alone
    # False: float64 within a stage, and only what passes between stages is bf16
    operands: bool = True
    io: IoType = BFLOAT16

    @property
    def dtype(self):
        return np.float32 if self.rounding and self.operands else np.float64

    def store(self, x):
        """A tensor that a stage hands on."""
        return np.asarray(self.io.round(x), self.dtype) if self.rounding else x

    def operand(self, x):
        """A matrix operand inside a stage."""
        return self.store(x) if self.operands else x

    def operand_pair(self, x):
        """A matrix operand that is the sum of two numbers of the io type."""
        return sum(self.io.split(x)) if self.rounding and self.operands else x

    def store_pair(self, x):
        """A tensor that a stage hands on, with precise_relay as the sum of two bf16 numbers. Where
        a stage takes the first of them alone, product rounds to it."""
        if not (self.precise_relay and self.rounding):
            return self.store(x)
        return np.asarray(sum(self.io.split(np.float32(x))), self.dtype)

    def relay(self, a, b):
        """A product of operands that may be pairs, as they are."""
        return a @ b if self.precise_relay else self.product(a, b)

    def product(self, a, b):
        """Both operands in the io type, fp32 sums."""
        return self.operand(a) @ self.operand(b)

    def fine_product(self, a, b):
        """Operands as hi + lo pairs; the lo lo term is below fp32's own rounding."""
        if not (self.rounding and self.operands and self.split_intra):
            return self.product(a, b)
        (a_hi, a_lo), (b_hi, b_lo) = self.io.split(a), self.io.split(b)
        return a_hi @ b_hi + (a_hi @ b_lo + a_lo @ b_hi)

    # ------------------------------------------------------------------ decayed products of a chunk
    def _grad_products(self, gk, is_bounded):
        """What level_products gives, for the backward: around one reference row a block of rows if
        the gate is bounded."""
        if not is_bounded:
            yield from level_products(np.diff(gk, axis=1, prepend=gk.dtype.type(0)))
            return
        tokens = gk.shape[-2]
        for start in range(0, tokens, BLOCK):
            stop = min(tokens, start + BLOCK)
            row = start + min(REFERENCE_ROW, stop - start - 1)
            block, ref = slice(start, stop), gk[:, row : row + 1]
            row_factor, column_factor = np.exp2(gk[:, block] - ref), np.exp2(ref - gk[:, :stop])
            yield block, slice(0, stop), np.True_, row_factor, column_factor

    def scores(self, x, k, a, lower_bound):
        """sum_d x_i k_j 2^(gk_i - gk_j) for j <= i, else 0, with a = log2(e) times the log decay of
        each row. lower_bound: None for a gate that has none."""
        gk = np.cumsum(a, axis=1, dtype=self.dtype)
        if not self.row_blocks:
            pairs = reference.pair_decay(gk)
            return np.tril(np.einsum("hid,hjd,hijd->hij", x, k, pairs, optimize=True))
        out = np.zeros(gk.shape[:2] + gk.shape[1:2], self.dtype)
        if lower_bound is None:
            for rows, columns, keep, left, right in level_products(a):
                part = self.product(x[:, rows] * left, _t(k[:, columns] * right))
                out[:, rows, columns] = np.where(keep, part, out[:, rows, columns])
            return out
        # The reference of a block is its first row, shifted by half of what the gate can fall
        # within the block.
        shift = self.dtype(np.round(-0.5 * (BLOCK - 1) * lower_bound * reference.LOG2E))
        for start in range(0, gk.shape[1], BLOCK):
            stop = min(gk.shape[1], start + BLOCK)
            block, ref = slice(start, stop), gk[:, start : start + 1] - shift
            left = x[:, block] * np.exp2(gk[:, block] - ref)
            right = k[:, :stop] * np.exp2(ref - gk[:, :stop])
            out[:, block, :stop] = self.product(left, np.swapaxes(right, 1, 2))
        return np.tril(out)

    def scores_grad(self, d, x, k, gk, is_bounded=True):
        """From the gradient d of the scores (already masked): sum_j d_ij k_j E_ij by rows, sum_i
        d_ij x_i E_ij by columns, and the gate's part of both, x times rows minus k times columns.

        Rows and columns sum the same pairs, so over a chunk the two gate parts cancel, but only as
        far as both see the same numbers. Either the operands are exact enough (split_intra), or
        the gate's parts multiply the very operands that were rounded (paired_gate).
        """
        if not self.row_blocks:
            pairs = reference.pair_decay(gk)
            by_row = np.einsum("hij,hjd,hijd->hid", d, k, pairs, optimize=True)
            by_column = np.einsum("hij,hid,hijd->hjd", d, x, pairs, optimize=True)
            return by_row, by_column, x * by_row - k * by_column
        by_row, by_column, gate = np.zeros_like(x), np.zeros_like(k), np.zeros_like(k)
        for rows_of, columns_of, keep, row_factor, column_factor in self._grad_products(
            gk, is_bounded
        ):
            part = np.where(keep, d[:, rows_of, columns_of], 0)
            left, right = x[:, rows_of] * row_factor, k[:, columns_of] * column_factor
            if self.paired_gate:
                part = self.operand_pair(part) if self.split_scores else self.operand(part)
                left, right = self.operand(left), self.operand(right)
                rows, columns = part @ right, _t(part) @ left
                gate[:, rows_of] += left * rows
                gate[:, columns_of] -= right * columns
            else:
                rows, columns = self.fine_product(part, right), self.fine_product(_t(part), left)
            by_row[:, rows_of] += row_factor * rows
            by_column[:, columns_of] += column_factor * columns
        return by_row, by_column, gate if self.paired_gate else x * by_row - k * by_column


REAL = Numerics()
EXACT = Numerics(rounding=False)
PRECISE_RELAY = Numerics(precise_relay=True)
# The least error that any kernels can have which hand on u, v_new and the other caches in the
# dtypes that the stages' contract gives them.
HANDED_ON = Numerics(operands=False)


def is_bounded(x, nm=REAL):
    """Whether factors around a reference row stay in range."""
    if nm.io.is_half:
        return False
    return x.options.get("use_gate_in_kernel", True) and x.options.get("safe_gate", True)


def _group(x):
    """Value heads of one query/key head."""
    return x.v.shape[1] // x.k.shape[1]


def fwd_prepare(x, nm=REAL):
    """Stage 1 of an inputs.Inputs. gk is always in units of log2: use_exp2 changes no result."""

    def cast(a):
        return np.asarray(a, nm.dtype)

    options = dict(x.options)
    epsilon = options.pop("epsilon", 1e-6)
    q, k = cast(x.q), cast(x.k)
    v, scale = cast(x.v), nm.dtype(x.scale)
    q_hat, k_hat, q_rstd, k_rstd = q, k, None, None
    if options.get("use_qk_l2norm_in_kernel"):
        (q_hat, q_rstd), (k_hat, k_rstd) = (reference.l2norm(a, nm.dtype(epsilon)) for a in (q, k))
    q_used, k_used = q_hat, k_hat
    q_hat, k_hat = nm.store(q_hat), nm.store_pair(k_hat)
    if not nm.fresh_operands:
        q_used, k_used = q_hat, k_hat
    q_used, k_used = (reference.expand_heads(a, _group(x)) for a in (q_used, k_used))
    pick = reference._pick
    beta = cast(reference.effective_beta(cast(x.beta), **pick(options, reference.BETA_OPTIONS)))
    a = cast(
        reference.gate(
            cast(x.g), cast(x.a_log), cast(x.dt_bias), **pick(options, reference.GATE_OPTIONS)
        )
    )
    bound = x.options.get("lower_bound", -5.0) if is_bounded(x, nm) else None
    below_one = options.get("use_beta_sigmoid_in_kernel") and not options.get("allow_neg_eigval")
    split = nm.precise_relay or (nm.split_inverse and not below_one)
    chunk = 64
    out = {n: np.zeros_like(a) for n in ("gk", "w", "qg", "kg", "qg_scaled")}
    out["u"] = np.zeros_like(v)
    out["aqk"] = np.zeros(v.shape[:3] + (chunk,), nm.dtype)
    out["akk"] = np.zeros_like(out["aqk"])
    for c in reference.chunks(v.shape[0], v.shape[2], chunk):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        decays = a[at] * nm.dtype(reference.LOG2E)
        gk = np.cumsum(decays, axis=1, dtype=nm.dtype)
        qc, kc, bc = q_used[at], k_used[at], beta[at][..., None]
        lower = np.tril(bc * nm.scores(kc, kc, decays, bound), -1)
        inverse = np.linalg.inv(np.eye(rows, dtype=nm.dtype) + lower)
        decay = np.exp2(gk)
        out["gk"][at] = gk
        out["akk"][at][..., :rows] = nm.store(inverse)
        scores = scale * nm.scores(qc, kc, decays, bound)
        if bound is None or rows <= BLOCK:  # the diagonal is never rounded on its way
            scores[:, range(rows), range(rows)] = scale * np.sum(qc * kc, -1)
        out["aqk"][at][..., :rows] = nm.store(scores)
        if nm.fold_beta:
            folded = inverse * _t(bc)
            folded = nm.operand_pair(folded) if split else nm.operand(folded)
            out["w"][at] = nm.store(folded @ nm.operand(kc * decay))
            u = folded @ nm.operand(v[at])
            out["u"][at] = u if nm.precise_relay else nm.store(u)
        else:
            out["w"][at] = nm.store(nm.product(inverse, bc * kc * decay))
            out["u"][at] = nm.store(nm.product(inverse, bc * v[at]))
        out["qg"][at] = nm.store(qc * decay)
        out["qg_scaled"][at] = nm.store(scale * qc * decay)
        out["kg"][at] = nm.store_pair(kc * np.exp2(gk[:, -1:] - gk))
    return dict(out, q_hat=q_hat, k_hat=k_hat, q_rstd=q_rstd, k_rstd=k_rstd, beta_eff=beta)


def fwd_h(kg, w, u, gk, initial_state=None, nm=REAL):
    """Stage 3: the state stays in fp32, its stored copy and its use as an operand are bf16, or a
    pair."""
    batch, heads, tokens, k_dim = kg.shape
    state = np.zeros((batch, heads, k_dim, u.shape[3]), nm.dtype)
    if initial_state is not None:
        state[...] = initial_state
    h = np.zeros((batch, reference.chunk_count(tokens)) + state.shape[1:], nm.dtype)
    v_new = np.zeros_like(u)
    for c in reference.chunks(batch, tokens):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        h[c.batch, c.slot] = nm.store_pair(state[c.batch])
        pair = nm.store_pair(u[at] - nm.relay(w[at], h[c.batch, c.slot]))
        v_new[at] = nm.store(pair)
        state[c.batch] = np.exp2(gk[c.batch, :, c.stop - 1])[..., None] * state[c.batch] + nm.relay(
            _t(kg[at]), pair
        )
    return h, v_new, state


def fwd_finalize(qg_scaled, aqk, v_new, h, nm=REAL):
    """Stage 4."""
    out = np.zeros_like(v_new)
    for c in reference.chunks(v_new.shape[0], v_new.shape[2]):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        scores = aqk[at][..., : c.stop - c.start]
        out[at] = nm.store(
            nm.product(qg_scaled[at], h[c.batch, c.slot]) + nm.product(scores, v_new[at])
        )
    return out


def bwd_prepare(aqk, v_new, d_o, h, scale, nm=REAL):
    """Stage 5."""
    d_aqk, dv_local = np.zeros_like(aqk), np.zeros_like(d_o)
    dq_raw = np.zeros(d_o.shape[:3] + (h.shape[3],), nm.dtype)
    for c in reference.chunks(d_o.shape[0], d_o.shape[2]):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        d_aqk[at][..., :rows] = scale * np.tril(nm.product(d_o[at], _t(v_new[at])))
        dv_local[at] = nm.store(nm.product(_t(aqk[at][..., :rows]), d_o[at]))
        dq_raw[at] = nm.product(d_o[at], _t(h[c.batch, c.slot]))
    return d_aqk, dv_local, dq_raw


def bwd_dhu(qg, kg, w, d_o, dv_local, scale, gk, h0=None, dht=None, nm=REAL):
    """Stage 7."""
    batch, heads, tokens, k_dim = kg.shape
    grad = np.zeros((batch, heads, k_dim, d_o.shape[3]), nm.dtype)
    if dht is not None:
        grad[...] = dht
    dh = np.zeros((batch, reference.chunk_count(tokens)) + grad.shape[1:], nm.dtype)
    dv_scan = np.zeros_like(d_o)
    for c in reversed(reference.chunks(batch, tokens)):
        at = (c.batch, slice(None), slice(c.start, c.stop))
        dh[c.batch, c.slot] = nm.store_pair(grad[c.batch])
        dv_scan[at] = nm.store(dv_local[at] + nm.relay(kg[at], dh[c.batch, c.slot]))
        grad[c.batch] = (
            np.exp2(gk[c.batch, :, c.stop - 1])[..., None] * grad[c.batch]
            + scale * nm.product(_t(qg[at]), d_o[at])
            - nm.product(_t(w[at]), dv_scan[at])
        )
    return dh, None if h0 is None else grad, dv_scan


def bwd_finalize(x, cache, dh, dv_scan, d_aqk, dq_raw, nm=REAL):
    """Stage 8."""

    def cast(a):
        return None if a is None else np.asarray(a, nm.dtype)

    scale, v_all, bounded = nm.dtype(x.scale), cast(x.v), is_bounded(x, nm)
    q_hat, k_hat, beta, gk_all = (cache[n] for n in ("q_hat", "k_hat", "beta_eff", "gk"))
    q_all, k_all = (reference.expand_heads(a, _group(x)) for a in (q_hat, k_hat))
    dq, dk, da = (np.zeros_like(gk_all) for _ in range(3))
    dv, dbeta = np.zeros_like(v_all), np.zeros_like(beta)
    for c in reference.chunks(q_hat.shape[0], q_hat.shape[2]):
        rows = c.stop - c.start
        at = (c.batch, slice(None), slice(c.start, c.stop))
        q, k, v, gk, b = q_all[at], k_all[at], v_all[at], gk_all[at], beta[at][..., None]
        inverse, x_scan = cache["akk"][at][..., :rows], dv_scan[at]
        state, state_grad = cache["h"][c.batch, c.slot], dh[c.batch, c.slot]
        decay = np.exp2(gk)
        k_decayed = k * decay
        folded = inverse * _t(b)

        dq_c = scale * decay * dq_raw[at]
        if nm.precise_relay:
            inner = nm.relay(v, _t(state_grad))
            inner = inner - nm.product(k_decayed, nm.relay(state, _t(state_grad)))
            relay = nm.relay(nm.operand_pair(folded), nm.operand(inner))
        elif nm.regroup:
            inner = nm.product(v, _t(state_grad))
            relay = nm.product(folded, inner) - nm.product(
                nm.product(folded, k_decayed), nm.product(state, _t(state_grad))
            )
        else:
            relay = nm.product(cache["v_new"][at], _t(state_grad))
        dk_c = np.exp2(gk[:, -1:] - gk) * relay
        dgk = q * dq_c
        dgk[:, -1] += decay[:, -1] * np.sum(state * state_grad, -1)
        written = np.cumsum(k * dk_c, axis=1, dtype=nm.dtype)

        dw = -nm.relay(x_scan, _t(state))
        dvb, dkb = nm.product(_t(inverse), x_scan), nm.product(_t(inverse), dw)
        dv[at] = b * dvb
        dbeta_c = np.sum(dvb * v, -1) + np.sum(dkb * k_decayed, -1)
        dk_c = dk_c + b * decay * dkb
        dgk = dgk + b * k_decayed * dkb

        d_inverse = np.tril(
            _t(b) * (nm.product(x_scan, _t(v)) + nm.fine_product(dw, _t(k_decayed)))
        )
        d_lower = -np.tril(
            nm.fine_product(nm.fine_product(_t(inverse), d_inverse), _t(inverse)), -1
        )

        d_scores = d_aqk[at][..., :rows]
        d_diagonal = np.einsum("hii->hi", d_scores)[..., None]
        if nm.exclude_diagonal:
            q_rows, k_columns, gate = nm.scores_grad(np.tril(d_scores, -1), q, k, gk, bounded)
            dq_diagonal, dk_diagonal = d_diagonal * k, d_diagonal * q
        else:
            q_rows, k_columns, gate = nm.scores_grad(d_scores, q, k, gk, bounded)
            dq_diagonal = dk_diagonal = 0
        k_rows, k_columns_2, k_gate = nm.scores_grad(d_lower, b * k, k, gk, bounded)
        k_columns = k_columns + k_columns_2
        dq[at] = dq_c + q_rows + dq_diagonal
        dk[at] = dk_c + b * k_rows + k_columns + dk_diagonal
        dbeta[at] = dbeta_c + np.sum(k_rows * k, -1)
        dgk = dgk + gate + k_gate
        da[at] = np.cumsum(dgk[:, ::-1], axis=1, dtype=nm.dtype)[:, ::-1]
        da[at][:, 1:] += written[:, :-1]

    # In the order of the value heads, in fp32.
    dq, dk = (
        np.add.reduce(a.reshape(q_hat.shape[:2] + (_group(x),) + a.shape[2:]), axis=2)
        for a in (dq, dk)
    )
    if cache["q_rstd"] is not None:
        dq = reference.l2norm_grad(dq, q_hat, cache["q_rstd"])
        dk = reference.l2norm_grad(dk, k_hat, cache["k_rstd"])
    if x.options.get("use_beta_sigmoid_in_kernel"):
        top = 2 if x.options.get("allow_neg_eigval") else 1
        dbeta = dbeta * beta * (1 - beta / nm.dtype(top))
    dg, da_log, ddt_bias = reference.gate_grad(
        da,
        cast(x.g),
        cast(x.a_log),
        cast(x.dt_bias),
        **reference._pick(x.options, reference.GATE_OPTIONS),
    )
    return {
        "dq": nm.store(dq),
        "dk": nm.store(dk),
        "dv": nm.store(dv),
        "dbeta": dbeta,
        "dg": nm.store(dg),
        "da_log": da_log,
        "ddt_bias": ddt_bias,
    }


def results(x, nm=REAL):
    """output, final_state and every gradient of an inputs.Inputs (dense), by name."""
    cache = fwd_prepare(x, nm)
    cache["h"], cache["v_new"], final_state = fwd_h(
        cache["kg"], cache["w"], cache["u"], cache["gk"], x.initial_state, nm
    )
    output = fwd_finalize(cache["qg_scaled"], cache["aqk"], cache["v_new"], cache["h"], nm)
    d_o = np.zeros_like(cache["u"]) if x.d_o is None else np.asarray(x.d_o, nm.dtype)
    scale = nm.dtype(x.scale)
    d_aqk, dv_local, dq_raw = bwd_prepare(cache["aqk"], cache["v_new"], d_o, cache["h"], scale, nm)
    dh, dh0, dv_scan = bwd_dhu(
        cache["qg"],
        cache["kg"],
        cache["w"],
        d_o,
        dv_local,
        scale,
        cache["gk"],
        x.initial_state,
        x.dht,
        nm,
    )
    grads = bwd_finalize(x, cache, dh, dv_scan, d_aqk, dq_raw, nm)
    return dict(output=output, final_state=final_state, **grads, dh0=dh0)
