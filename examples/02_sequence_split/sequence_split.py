# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Packed sequences split over ranks along the token axis: what each rank computes and sends.

``split`` says which rank holds what. A ``Rank`` runs the stages of one rank; nothing in it knows of
other ranks but the two arrays of summaries that the caller gathers, one forward, one backward.
``run`` is that caller for ranks that all live in one process.
"""

from dataclasses import dataclass

from mindspore import ops

import hyper_parallel_kda as kda

CACHES = (
    "gk",
    "aqk",
    "akk",
    "w",
    "u",
    "qg",
    "kg",
    "qg_scaled",
    "q_hat",
    "k_hat",
    "q_rstd",
    "k_rstd",
    "beta_eff",
)
LOW_CACHES = ("kg_low", "k_hat_low")  # two more with precise_relay
TOKEN_AXIS = {"BNSD": 2, "BSND": 1, "NTD": 1, "TND": 0}
# What a rank keeps between forward and backward: every cache; or inputs and boundary states, from
# which fwd_prepare and fwd_h make the caches again; or akk as well, which saves that part.
KEEP = ("caches", "inputs", "akk")


@dataclass(frozen=True)
class Part:
    """What one rank holds. Tokens are those of the whole batch."""

    start: int
    stop: int
    pieces: tuple  # (sequence, start, stop) of each sequence, or part of one, in token order
    before: int  # ranks before this one that hold the first piece's sequence as well
    after: int  # ranks after this one that hold the last piece's sequence as well

    @property
    def sequences(self):
        return [sequence for sequence, _, _ in self.pieces]

    @property
    def cu_seqlens(self):
        """The local bounds: 0 and where each piece ends."""
        return [0] + [stop - self.start for _, _, stop in self.pieces]


def _pieces(cu_seqlens, start, stop, is_last):
    """A rank holds every sequence that has a token in its span, and the empty ones that begin in
    it. A rank without tokens holds an empty piece of the sequence that reaches it: a piece without
    tokens passes states through unchanged."""
    pieces = []
    for sequence, (begin, end) in enumerate(zip(cu_seqlens, cu_seqlens[1:])):
        first, last = max(begin, start), min(end, stop)
        reaches = start == stop and (begin < start <= end or (start == 0 and sequence == 0))
        empty = begin == end and (start <= begin < stop or (is_last and begin == stop))
        if first < last or reaches or empty:
            pieces.append((sequence, first, max(first, last)))
    return tuple(pieces)


def split(cu_seqlens, cuts):
    """The Part of every rank. ``cu_seqlens`` bounds the sequences, ``cuts`` the ranks: both start
    at 0, end at the number of tokens and do not decrease. Cuts need not lie on sequence or chunk
    bounds."""
    spans = list(zip(cuts, cuts[1:]))
    last_rank = len(spans) - 1
    held = [_pieces(cu_seqlens, *span, r == last_rank) for r, span in enumerate(spans)]
    parts = []
    for rank, ((start, stop), pieces) in enumerate(zip(spans, held)):
        first, last = (pieces[0][0], pieces[-1][0]) if pieces else (None, None)
        before = sum(first in [p[0] for p in other] for other in held[:rank])
        after = sum(last in [p[0] for p in other] for other in held[rank + 1 :])
        parts.append(Part(start, stop, pieces, before, after))
    return parts


def take(tensor, layout, part):
    """The part's tokens of an input of the whole batch."""
    if tensor is None:
        return None
    axis = TOKEN_AXIS[layout]
    return tensor[(slice(None),) * axis + (slice(part.start, part.stop),)].contiguous()


class Rank:
    """One rank's share of the layer, forward and backward.

    ``tensors``: q, k, v, g, beta (this rank's tokens, in ``layout``), a_log, dt_bias.
    ``initial_states``: ``[N, Hv, K, V]`` (``[N, Hv, V, K]`` with state_v_first) of all sequences of
    the batch, or None for zeros. ``packed`` False: the batch is one sequence, no cu_seqlens needed.
    ``options``: what fwd_prepare takes besides, use_exp2 and precise_relay among them. Summaries
    have no pairs: precise_relay makes exact what a rank makes of a state or a gradient, not the
    products in the summary that carried it there.
    """

    def __init__(
        self,
        rank,
        part,
        tensors,
        scale,
        *,
        layout,
        initial_states=None,
        packed=True,
        keep="caches",
        state_v_first=False,
        **options,
    ):
        self.rank, self.part, self.tensors, self.scale = rank, part, tensors, scale
        self.layout, self.keep, self.options = layout, keep, options
        self.output_layout = "BSND" if layout in ("BNSD", "BSND") else "TND"
        self.initial_states = initial_states
        self.cu_seqlens = part.cu_seqlens if packed else None
        self.units = {"use_exp2": options.get("use_exp2", True)}
        self.v_first = {"state_v_first": state_v_first}

    # ---------------------------------------------------------------------------------- forward
    def summarise(self):
        """What this rank does to a state that enters its last sequence: ``[Hv, K, V + K]``."""
        mode = {"caches": "save", "inputs": "none", "akk": "forward"}[self.keep]
        self.caches = self._prepare(mode)
        c = self.caches
        (summaries,) = kda.npu_chunk_kda_pre_process_fwd(
            c["kg"], c["w"], c["u"], gk=c["gk"], cu_seqlens=self.cu_seqlens, **self.units
        )
        return summaries[-1]

    def forward(self, summaries):
        """Output, and the state after each of this rank's pieces. ``summaries``: those of all ranks
        in rank order, ``[R, Hv, K, V + K]``."""
        self.entry = self._boundary(self.initial_states, summaries, forward=True)
        c = self.caches
        final_states = self._scan(c)
        o = kda.npu_chunk_kda_fwd_finalize(
            c["qg_scaled"],
            c["aqk"],
            c["v_new"],
            c["h"],
            output_layout=self.output_layout,
            cu_seqlens=self.cu_seqlens,
            **self.v_first,
        )
        if self.keep != "caches":
            self.caches = {"akk": c["akk"]} if self.keep == "akk" else {}
        return o, final_states

    # --------------------------------------------------------------------------------- backward
    def summarise_backward(self, d_o):
        """What this rank does to the gradient of a state that leaves its first sequence."""
        c = self.caches
        if self.keep != "caches":
            c.update(self._prepare("save" if self.keep == "inputs" else "recompute", c.get("akk")))
            self._scan(c)
        # Without qg the scans take qg_scaled, which has the scale in it.
        self.query = (c["qg"], self.scale) if c["qg"] is not None else (c["qg_scaled"], 1.0)
        self.d_o = d_o
        c["d_aqk"], c["dv_local"], c["dq_raw"] = kda.npu_chunk_kda_bwd_prepare(
            c["aqk"],
            c["v_new"],
            d_o,
            c["h"],
            scale=self.scale,
            layout=self.output_layout,
            cu_seqlens=self.cu_seqlens,
            **self.v_first,
        )
        q, scale = self.query
        return kda.npu_chunk_kda_pre_process_bwd(
            q,
            c["kg"],
            c["w"],
            d_o,
            c["dv_local"],
            scale,
            gk=c["gk"],
            cu_seqlens=self.cu_seqlens,
            layout=self.output_layout,
            **self.units,
        )

    def backward(self, summaries, final_state_grads=None):
        """dq, dk, dv, dbeta, dg, da_log, ddt_bias, dh0 by name. dh0 has a row a piece; da_log and
        ddt_bias are this rank's terms of a sum over the ranks."""
        c, t = self.caches, self.tensors
        exit_grads = self._boundary(final_state_grads, summaries, forward=False)
        q, scale = self.query
        dh, dh0, dv_scan, *dh_low = kda.npu_chunk_kda_bwd_dhu(
            q,
            c["kg"],
            c["w"],
            self.d_o,
            c["dv_local"],
            scale,
            gk=c["gk"],
            h0=self.entry,
            dht=exit_grads,
            cu_seqlens=self.cu_seqlens,
            layout=self.output_layout,
            k_low=c["kg_low"],
            **self.units,
            **self.v_first,
        )
        gate = ("safe_gate", "lower_bound", "use_gate_in_kernel")
        beta = ("use_beta_sigmoid_in_kernel", "allow_neg_eigval")
        grads = kda.npu_chunk_kda_bwd_finalize(
            c["q_hat"],
            c["k_hat"],
            t["v"],
            c["gk"],
            t["g"],
            c["beta_eff"],
            t["a_log"],
            t["dt_bias"],
            c["akk"],
            c["v_new"],
            c["h"],
            dh,
            dv_scan,
            c["d_aqk"],
            c["dq_raw"],
            scale=self.scale,
            q_rstd=c["q_rstd"],
            k_rstd=c["k_rstd"],
            cu_seqlens=self.cu_seqlens,
            output_layout=self.layout,
            input_layout=self.layout,
            k_low=c["k_hat_low"],
            h_low=c["h_low"],
            dh_low=dh_low[0] if dh_low else None,
            **{name: self.options[name] for name in gate + beta if name in self.options},
            **self.units,
            **self.v_first,
        )
        self.caches = None
        names = ("dq", "dk", "dv", "dbeta", "dg", "da_log", "ddt_bias")
        return dict(zip(names, grads, strict=True), dh0=dh0)

    # ----------------------------------------------------------------------------------- pieces
    def _prepare(self, mode, akk=None):
        t = self.tensors
        slots = kda.npu_chunk_kda_fwd_prepare(
            t["q"],
            t["k"],
            t["v"],
            t["g"],
            t["beta"],
            self.scale,
            layout=self.layout,
            a_log=t["a_log"],
            dt_bias=t["dt_bias"],
            cu_seqlens=self.cu_seqlens,
            backward_mode=mode,
            **self.options,
        )
        names = CACHES + LOW_CACHES if self.options.get("precise_relay") else CACHES
        caches = dict.fromkeys(LOW_CACHES) | dict(zip(names, slots, strict=True))
        if akk is not None:
            caches["akk"] = akk
        return caches

    def _scan(self, c):
        c["h"], c["v_new"], final_states, *low = kda.npu_chunk_kda_fwd_h(
            c["kg"],
            c["w"],
            c["u"],
            gk=c["gk"],
            initial_state=self.entry,
            output_final_state=True,
            cu_seqlens=self.cu_seqlens,
            k_low=c["kg_low"],
            **self.units,
            **self.v_first,
        )
        c["h_low"] = low[0] if low else None
        return final_states

    def _boundary(self, states, summaries, forward):
        """The states that enter the pieces (or, backward, the gradients that enter them from
        behind): those of their sequences, and for the piece that other ranks hold a part of, what
        their summaries make of it."""
        part = self.part
        count = part.before if forward else part.after
        if states is None and count == 0:
            return None
        if states is None:
            heads, keys = summaries.shape[1:3]  # K = V: either may come first
            own = ops.zeros((len(part.pieces), heads, keys, keys), summaries.dtype)
        else:
            own = ops.stack([states[sequence] for sequence in part.sequences]).contiguous()
        if count > 0:
            shared = 0 if forward else len(part.pieces) - 1
            merged = kda.npu_chunk_kda_merge_fwd_bwd(
                own[shared].copy(), summaries, count, self.rank, forward=forward, **self.v_first
            )
            rows = [merged if row == shared else own[row] for row in range(own.shape[0])]
            own = ops.stack(rows).contiguous()
        return own


# --------------------------------------------------------------------- all ranks in one process
def all_gather(of_each_rank):
    """In place of mint.distributed.all_gather, which hands every rank this list."""
    return ops.stack(of_each_rank)


def run(ranks, d_o, final_state_grads=None):
    """Output, final state and gradients of the whole batch by name. ``d_o``: of the whole batch,
    token-major."""
    layout = ranks[0].output_layout
    summaries = all_gather([rank.summarise() for rank in ranks])
    forward = [rank.forward(summaries) for rank in ranks]

    back = all_gather([rank.summarise_backward(take(d_o, layout, rank.part)) for rank in ranks])
    grads = [rank.backward(back, final_state_grads) for rank in ranks]

    results = {"output": _join([o for o, _ in forward], layout)}
    for name in ("dq", "dk", "dv", "dbeta", "dg"):
        results[name] = _join([g[name] for g in grads], ranks[0].layout)
    for name in ("da_log", "ddt_bias"):  # all_reduce
        terms = [g[name] for g in grads]
        results[name] = None if terms[0] is None else sum(terms[1:], terms[0])
    # The last rank that holds a sequence has its final state, the first one its dh0.
    results["final_state"] = _of_sequences(ranks, [states for _, states in forward], "last")
    results["dh0"] = None
    if ranks[0].initial_states is not None:
        results["dh0"] = _of_sequences(ranks, [g["dh0"] for g in grads], "first")
    return results


def _join(tensors, layout):
    filled = [tensor for tensor in tensors if 0 not in tensor.shape] or tensors[:1]
    return ops.cat(filled, TOKEN_AXIS[layout])


def _of_sequences(ranks, states, which):
    found = {}
    for rank, of_pieces in zip(ranks, states, strict=True):
        for row, sequence in enumerate(rank.part.sequences):
            if which == "last" or sequence not in found:
                found[sequence] = of_pieces[row]
    return ops.stack([found[sequence] for sequence in sorted(found)])
