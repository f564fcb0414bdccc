# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The one table of the rules that values and sizes of one call have to keep.

Types, dtypes and shapes are in the stage table; here is everything else. ``checks.py`` applies the
rules in this order, ``docs/api.md`` lists them, and the tiling of the ops refuses the same calls
with the same words (``op_host/common/rules.h``; a test compares the two). It imports nothing
outside the standard library.

A rule sees the call's arguments by name and, where it needs them, the sizes that the tensors'
shapes gave: Hk, Hv, B, R. It holds for every function that has all that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

HEAD_DIM = 128
CHUNK_SIZE = 64
SIZES = ("B", "Hk", "Hv", "R")
# The functions that take packed sequences.
PACKED = (
    "chunk_kda",
    "fwd_prepare",
    "pre_process_fwd",
    "fwd_h",
    "fwd_finalize",
    "bwd_prepare",
    "pre_process_bwd",
    "bwd_dhu",
    "bwd_finalize",
)

Call = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    argument: str  # the one that a message names
    expected: str | Callable[[Call], str]
    needs: tuple[str, ...]
    holds: Callable[[Call], bool]
    when: str = ""  # the condition in words; empty: always
    got: Callable[[Call], str] | None = None  # default: the argument's value
    words: str = ""  # for the documentation, where `expected` is a function
    only: tuple[str, ...] = ()  # stages, by name; empty: all that have what it needs

    def applies(self, function: str, available: Any) -> bool:
        if self.only and function not in self.only:
            return False
        return all(name in available for name in self.needs)

    @property
    def needs_sizes(self) -> bool:
        return any(name in SIZES for name in self.needs)

    @property
    def text(self) -> str:
        return self.expected if isinstance(self.expected, str) else self.words


def _neighbours(call: Call) -> int:
    """Ranks before, or after, the one at hand."""
    return call["rank"] if call["forward"] else call["R"] - 1 - call["rank"]


def _got_neighbours(call: Call) -> str:
    side = "before" if call["forward"] else "after"
    return (
        f"{call['pre_or_post_num_ranks']}: {_neighbours(call)} ranks are {side} rank {call['rank']}"
    )


def _only_one_given(first: str, second: str) -> Callable[[Call], str]:
    return lambda call: f"only {second if call[first] is None else first}"


RULES: tuple[Rule, ...] = (
    Rule("chunk_size", f"{CHUNK_SIZE}", ("chunk_size",), lambda c: c["chunk_size"] == CHUNK_SIZE),
    Rule("scale", "a finite number", ("scale",), lambda c: math.isfinite(c["scale"])),
    Rule(
        "epsilon",
        "a finite number >= 0",
        ("epsilon",),
        lambda c: math.isfinite(c["epsilon"]) and c["epsilon"] >= 0,
    ),
    Rule(
        "lower_bound",
        "a number in [-5, 0)",
        ("lower_bound", "safe_gate"),
        lambda c: not c["safe_gate"] or -5.0 <= c["lower_bound"] < 0.0,
        when="safe_gate=True",
    ),
    Rule(
        "lower_bound",
        "a finite number",
        ("lower_bound", "safe_gate"),
        lambda c: math.isfinite(c["lower_bound"]),
        when="safe_gate=False",
    ),
    Rule(
        "allow_neg_eigval",
        "False unless use_beta_sigmoid_in_kernel is True",
        ("allow_neg_eigval", "use_beta_sigmoid_in_kernel"),
        lambda c: c["use_beta_sigmoid_in_kernel"] or not c["allow_neg_eigval"],
    ),
    Rule(
        "a_log",
        "a float32 tensor [Hv] with use_gate_in_kernel=True",
        ("a_log", "use_gate_in_kernel"),
        lambda c: c["a_log"] is not None or not c["use_gate_in_kernel"],
        when="use_gate_in_kernel=True",
    ),
    *(
        Rule(
            f"{first} and {second}",
            "both or none",
            (first, second),
            lambda c, first=first, second=second: (c[first] is None) == (c[second] is None),
            got=_only_one_given(first, second),
        )
        for first, second in (("q_rstd", "k_rstd"), ("h_low", "dh_low"))
    ),
    Rule(
        "heads",
        "Hv to be a multiple of Hk",
        ("Hk", "Hv"),
        lambda c: c["Hk"] <= c["Hv"] and c["Hv"] % c["Hk"] == 0,
        got=lambda c: f"Hk = {c['Hk']}, Hv = {c['Hv']}",
    ),
    Rule(
        "B",
        "1 with cu_seqlens",
        ("B", "cu_seqlens"),
        lambda c: c["B"] == 1 or c["cu_seqlens"] is None,
        when="cu_seqlens given",
        only=tuple(name for name in PACKED if name != "pre_process_bwd"),  # whose B is always 1
    ),
    Rule(
        "chunk_indices",
        "None without cu_seqlens",
        ("chunk_indices", "cu_seqlens"),
        lambda c: c["chunk_indices"] is None or c["cu_seqlens"] is not None,
        when="cu_seqlens=None",
        got=lambda c: f"a {type(c['chunk_indices']).__name__}",
    ),
    Rule(
        "B",
        "1 (the summary has no batch axis)",
        ("B",),
        lambda c: c["B"] == 1,
        only=("pre_process_bwd",),
    ),
    Rule(
        "rank",
        lambda c: f"0 <= rank < {c['R']} (the summaries)",
        ("rank", "R"),
        lambda c: 0 <= c["rank"] < c["R"],
        words="0 <= rank < R",
    ),
    Rule(
        "pre_or_post_num_ranks",
        lambda c: f"0 to {_neighbours(c)}",
        ("pre_or_post_num_ranks", "rank", "forward", "R"),
        lambda c: 0 <= c["pre_or_post_num_ranks"] <= _neighbours(c),
        got=_got_neighbours,
        words="0 to rank with forward, 0 to R - 1 - rank without",
    ),
)


def of(function: str, arguments: Any) -> list[Rule]:
    """The rules of a stage, or of chunk_kda, given the names of its arguments and sizes."""
    return [rule for rule in RULES if rule.applies(function, arguments)]
