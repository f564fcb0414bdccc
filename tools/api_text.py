# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What docs/api.md says in words. Names, shapes, dtypes, defaults and rules come from the tables of
the package (tools/api_reference.py)."""

INTRODUCTION = """\
# API reference

`python -m tools.api_reference --write` makes this page from the tables that the functions check
their arguments with: `hyper_parallel_kda/stage_table.py` (tensors, options, outputs) and
`hyper_parallel_kda/rules.py` (what values and sizes have to keep). Change those, not this page; a
test compares. The mathematics of each stage is in [stages.md](stages.md), environment variables and
installing in the [README](../README.md), measured errors in [accuracy.md](accuracy.md).

## Conventions

| symbol | meaning |
|---|---|
| B, T | batch, tokens; B >= 1, T >= 0, tails of a chunk included |
| Hk, Hv | query/key heads, value heads; value head hv reads query/key head hv // (Hv / Hk) |
| K, V | widths of keys and values: 128 |
| C, Nc | chunk length, 64; chunks: ceil(T / C), packed: the sum of ceil(length / C) |
| N | sequences: B, packed: the entries of cu_seqlens less one |
| R | ranks whose summaries are merged |
| io | the dtype of q, k and v: bfloat16 or float16 |

* **Layouts** say where the token axis of a model's tensors is; NTD and TND have no batch axis. What
  passes between stages, "cache" below, is head-major: like BNSD, or like NTD in a call without
  a batch axis. Chunk states `h` and `dh` are `[B, Nc, Hv, K, V]` in both.
* **Units.** Gates are natural logarithms of a decay a token. The cumulative gate `gk` between
  the stages is in units of log2, or in nats with `use_exp2=False`; all stages of one chain take the
  same value, and results do not depend on it.
* **Dtypes.** q, k, v and the caches are bfloat16 or float16, all of a call alike. float16 has three
  bits more, and a range of 2^-24 to 65504: what leaves it becomes zero or infinite, gradients
  included ([stages.md](stages.md) says where). float32 q, k and v are refused: their tiles do not
  fit the 192 KB of a core's unified buffer beside their operands, and float32 products run at a
  quarter of the cube's rate.
* **Nothing is modified**, except `state` of `npu_chunk_kda_merge_fwd_bwd`, whose memory is its
  own: it may not be a view of the summaries'. MindSpore's check for tensors that were modified
  before a backward does not see that write. Tensors need not be contiguous, and one tensor may be
  passed for several arguments that are only read.
* **The same input gives the same bits**, whatever the number of threads and cores. A change at
  token t leaves the output before t as it is, to the bit, as long as all values are finite.
* **An activated gate above 0** is not refused (values are never read on the host). It grows the
  state instead of shrinking it; nothing is promised about accuracy or overflow then.
* **Any decay will do.** Without the safe gate a token's log decay counts down to -105 nats, where
  its factor is zero in float32; one of -1e6, or -inf, forgets the state and leaves the decays of
  the tokens around it as exact as they were.
* **Ranges.** float32 holds what leads to the results: exp(a_log), so a_log is at most 80; with the
  L2 norm the sum of squares of a row of q or k, so their values are below 1e18; and da_log's terms,
  so a raw safe gate is below 1e16. A row of zeros under the norm needs an epsilon above 0.
  Gradients whose parts fall below 1e-38 lose them. The safe gate's backward multiplies by factors
  of up to 2^58: beside values and states of the size of one, upstream gradients may be 1e-14 to
  1e18, and at 1e20 gradients become infinite. dbeta of a sigmoid in the kernel is made from the
  rounded beta: it is right to 1.5 % up to a raw beta of 13 and lost from 17 on, where the sigmoid's
  slope is 4e-8.
* **NaN and infinity** in an input reach their own sequence and head only, on the simulator. CANN
  advises against NaN in matrix products, so on an NPU this is unproven.
* **Examples** on this page continue each other.
* **Gradients** flow through `npu_chunk_kda` alone. The nine stages are what its backward is made
  of: differentiated by MindSpore itself, they count as constants, with gradients of zero.
* **Modes.** PyNative, also under `ms.jit(capture_mode="bytecode")` and in a Cell with a bprop of
  its own. The default `ms.jit` and GRAPH_MODE cells raise RuntimeError while they compile.

## Beyond the interface

The functions take the arguments of the interface that this library implements, with their names,
order, defaults and shapes. These are additions, all of them keywords with a default that changes
nothing: `precise_relay` of the op and of `fwd_prepare`, with its slots `kg_low` and `k_hat_low`;
`k_low`, `h_low` and `dh_low` of `fwd_h`, `bwd_dhu` and `bwd_finalize`; `use_exp2` of the two
summary stages, which could not tell nats otherwise; `layout` of `pre_process_bwd` and `bwd_dhu`,
for `d_o`; and `input_layout` of `bwd_finalize`, for v and raw_g. `cu_seqlens` may be left out in
`pre_process_fwd`, too.

## Errors

Before anything is sent to the device, in the form `function: argument: expected ..., got ...`:

* `TypeError`: a tensor that is missing or none, a wrong dtype, an option of another type.
* `ValueError`: a wrong shape, or one of the rules below. Options must be numbers that float32 can
  hold; a choice must be one of those listed. The C functions refuse the same, with the same words.
* `RuntimeError`: there is no op library, it lacks the stage, or the stage failed; the call is
  compiled by the default `ms.jit` or a GRAPH_MODE cell; a gradient is differentiated again; the
  device is Ascend and the library the simulator; or the process was forked after a first call.

{rules}
"""

PURPOSE = {
    "chunk_kda": "Kimi Delta Attention, differentiable in every tensor argument. Per token and "
    "head, with the state S `[K, V]`, the log decay a and the update rate b: "
    "`S <- diag(exp(a)) S; S <- S + b k (v - S^T k)^T; o = scale * S^T q`.",
    "fwd_prepare": "All work inside a chunk that does not need the state. Returns 13 slots; "
    "`backward_mode` selects which are there, the others are None.",
    "pre_process_fwd": "The state map of every sequence: `state_out = M @ state_in + E`. Returns a "
    "tuple of one tensor.",
    "fwd_h": "The state recurrence over chunks.",
    "fwd_finalize": "The output from the query cache, the new values and the states.",
    "bwd_prepare": "The gradients that depend on the output's gradient alone.",
    "pre_process_bwd": "The map of a sequence's state gradient: "
    "`d_state_in = Mb @ d_state_out + Eb`. It covers all tokens, or the first "
    "sequence of cu_seqlens.",
    "bwd_dhu": "The recurrence of the state's gradient, backwards in time.",
    "bwd_finalize": "The gradients of the inputs.",
    "merge_fwd_bwd": "Carries a state (or, backwards, its gradient) over the summaries of "
    "neighbouring ranks. `state` is updated in place and returned.",
}

_GATE = (
    "gate of each channel: raw with use_gate_in_kernel=True, else the log decay in nats, at most 0"
)
_DT_BIAS = "added to the raw gate; None is zero; not read without use_gate_in_kernel"
_A_LOG = "logarithm of the raw gate's rate; needed with use_gate_in_kernel=True, else not read"
_Q_GATED = "the slot `qg`; or `qg_scaled`, with scale = 1"
_K_GATED = "the slot `kg`"
_STATE_GRAD = "gradient of the state after the last token; None is zero"

# By argument, or by (function, argument) where one word means different things.
MEANING = {
    "q": "queries",
    "k": "keys",
    "v": "values",
    "g": _GATE,
    "raw_g": "the op's own gate input `g`, " + _GATE,
    "beta": "update rate; with use_beta_sigmoid_in_kernel the argument of a sigmoid",
    "scale": "factor of the queries, usually K ** -0.5",
    "chunk_size": "tokens a chunk; 64 is the only one",
    "layout": "axes of the tensors that have a shape for each layout",
    "input_layout": "axes of v and raw_g",
    "output_layout": "axes of the outputs that have a shape for each layout",
    "output_final_state": "also return the state after the last token",
    "safe_gate": "the raw gate is bounded: log decay = lower_bound * sigmoid(exp(a_log) * (g + "
    "dt_bias)); without it -exp(a_log) * softplus(g + dt_bias)",
    "lower_bound": "least log decay a token of the safe gate, in nats",
    "use_gate_in_kernel": "g is raw, and activated with a_log and dt_bias",
    "a_log": _A_LOG,
    "dt_bias": _DT_BIAS,
    "cu_seqlens": "bounds of packed sequences: a list, tuple, array or tensor of N + 1 ints that "
    "starts at 0, ends at T and does not decrease; sequences may be empty; B = 1 or a layout "
    "without batch axis",
    "chunk_indices": "pairs (sequence, chunk) of every chunk, sequence by sequence; made from "
    "cu_seqlens when None",
    "initial_state": "state before the first token of each sequence; None is zero",
    "disable_recompute": "True saves the caches that the backward reads; False saves the inputs "
    "and computes the caches again",
    "state_v_first": "states are `[.., V, K]` in memory; dh and summaries stay K-first",
    "epsilon": "added to the sum of squares of the norm",
    "use_qk_l2norm_in_kernel": "divide q and k by sqrt(sum(x * x) + epsilon)",
    "use_beta_sigmoid_in_kernel": "beta is the argument of a sigmoid",
    "allow_neg_eigval": "twice the sigmoid: update rates up to 2",
    ("pre_process_bwd", "cu_seqlens"): "two ints, first and second with 0 <= first <= second <= T: "
    "the stretch of tokens that the summary covers, on bounds of a sequence or of its chunks (not "
    "checked); of more the first two; B = 1",
    ("chunk_kda", "precise_relay"): "hand what carries a state and its gradient on, from chunk "
    "to chunk, as pairs of io numbers, high + low, and u in float32",
    "use_exp2": "gk is in units of log2; False: in nats",
    "backward_mode": "which slots are returned",
    "precise_relay": "kg and k_hat as pairs of io numbers, high + low, and u in float32, "
    "for fwd_h, bwd_dhu and bwd_finalize",
    "w": "the slot `w`",
    "u": "the slot `u`",
    "gk": "the slot `gk`",
    "aqk": "the slot `Aqk`",
    "akk": "the slot `Akk`",
    "qg_scaled": "the slot `qg_scaled`",
    "v_new": "result of fwd_h",
    "h": "result of fwd_h: the state at each chunk's entry",
    "d_o": "gradient of the output",
    "dv": "`dv_local` of bwd_prepare",
    "h0": "the initial state: dh0 is returned when it is given",
    "dht": _STATE_GRAD,
    "dh": "result of bwd_dhu",
    "dv_scan": "result of bwd_dhu",
    "d_aqk": "`dAqk` of bwd_prepare",
    "dq_raw": "result of bwd_prepare",
    "q_rstd": "the slot `q_rstd`: q was normalised",
    "k_rstd": "the slot `k_rstd`: k was normalised",
    "state": "the state to carry on, contiguous",
    ("bwd_finalize", "k_low"): "the slot `k_hat_low`; k is then the sum of both",
    "h_low": "result of fwd_h with k_low; h is then the sum of both where it meets dh or dv_scan",
    "dh_low": "result of bwd_dhu with k_low; dh is then the sum of both",
    ("fwd_h", "k_low"): "the slot `kg_low`: with it, states, v_new and k enter the products as "
    "pairs, high + low, and h_low is returned",
    ("bwd_dhu", "k_low"): "the slot `kg_low`: with it, dh and k enter the product of dv_scan as "
    "pairs, high + low, and dh_low is returned",
    "summaries": "of all ranks, in rank order",
    "pre_or_post_num_ranks": "ranks before (backwards: after) this one that hold the same sequence",
    "rank": "this rank",
    "forward": "True: merge ranks rank - n .. rank - 1; False: rank + n .. rank + 1",
    ("pre_process_fwd", "k"): _K_GATED,
    ("fwd_h", "k"): _K_GATED,
    ("pre_process_bwd", "q"): _Q_GATED,
    ("pre_process_bwd", "k"): _K_GATED,
    ("bwd_dhu", "q"): _Q_GATED,
    ("bwd_dhu", "k"): _K_GATED,
    ("bwd_finalize", "q"): "the slot `q_hat`",
    ("bwd_finalize", "k"): "the slot `k_hat`",
    ("bwd_finalize", "beta"): "the slot `beta_eff`",
}

# Of the op, which the stage table has no outputs for.
OP_OUTPUTS = """\
| output | shape | dtype | |
|---|---|---|---|
| `attn_out` | `[B, T, Hv, V]`; NTD and TND: `[T, Hv, V]` | io | token-major for every layout |
| `final_state` | `[N, Hv, K, V]`; state_v_first: `[N, Hv, V, K]` | float32 | None without \
output_final_state; T = 0: the initial state |

Both may take part in a loss; one that does not is as if its gradient were zero. Every gradient
has its input's dtype and layout. Gradients of gradients are refused."""

OUTPUT_NAMES = {"aqk": "Aqk", "akk": "Akk", "d_aqk": "dAqk", "da_log": "dA_log"}
