# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The one table of the nine stages: names, tensors, shapes, dtypes, attributes.

Argument checks, output allocation, the typed C signatures of the bridge, the table in
``docs/stages.md`` and the tests all read it. It imports nothing outside the standard library, so
that build scripts can load it by path.

Dimension symbols
    B batch, T tokens, Hk query/key heads, Hv value heads, K key width, V value width, C chunk
    length, Nc chunks per batch row (``ceil(T / C)``; packed: of all sequences), N sequences (= B
    for dense input), R ranks. In a call of rank 3 tensors with a T axis have no B axis; chunk
    states keep theirs, B = 1.
Dtypes
    ``io``: the dtype of q, k, v. ``fp32``. ``io|fp32``: either. ``=name``: that input's dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

REQUIRED = object()

LAYOUTS = ("BNSD", "BSND", "NTD", "TND")
RANK3_LAYOUTS = ("NTD", "TND")
BACKWARD_MODES = ("none", "forward", "recompute", "save")

Present = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument. ``dims`` are head-major; ``layout`` names the attribute that reorders."""

    name: str
    dims: tuple[str, ...]
    dtype: str  # of an output `io|fp32`: float32 where `wide` says so
    optional: bool = False
    layout: str | None = None  # attribute that says where the token axis is
    flat: bool = False  # the dims may also come multiplied out into one axis
    state: bool = False  # state_v_first transposes the last two dims
    note: str = ""
    when: str = ""  # for an optional output: when it is there, in words
    present: Present | None = None  # the same as a function of the call's values
    wide: Present | None = None  # when an output of dtype `io|fp32` is float32


@dataclass(frozen=True)
class HostArraySpec:
    """An optional list of int64 that the tiling reads on the host (ValueDepend)."""

    name: str
    note: str = ""


@dataclass(frozen=True)
class AttrSpec:
    name: str
    kind: str  # float, int, bool, str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageSpec:
    name: str  # Python: npu_chunk_kda_<name>
    op: str  # CANN op type; aclnn<op> is the symbol
    inputs: tuple[Any, ...]
    attrs: tuple[AttrSpec, ...]
    outputs: tuple[TensorSpec, ...]
    in_place: str | None = None  # the input that is also the output
    python_attrs: tuple[AttrSpec, ...] = ()  # of the Python function alone: what it returns

    @property
    def function(self) -> str:
        return "npu_chunk_kda_" + self.name

    @property
    def symbol(self) -> str:
        return "aclnn" + self.op

    @property
    def workspace_symbol(self) -> str:
        return self.symbol + "GetWorkspaceSize"

    @property
    def kernel(self) -> str:
        """Entry function and file name of the kernel."""
        return "chunk_kda_" + self.name

    def input(self, name: str) -> Any:
        return next(spec for spec in self.inputs if spec.name == name)

    def attr(self, name: str) -> AttrSpec:
        return next(spec for spec in self.attrs if spec.name == name)

    def output(self, name: str) -> TensorSpec:
        return next(spec for spec in self.outputs if spec.name == name)


def _tensor(name: str, dims: str, dtype: str, **kwargs: Any) -> TensorSpec:
    return TensorSpec(name, tuple(dims.split()), dtype, **kwargs)


CU_SEQLENS = HostArraySpec("cu_seqlens", "packed sequence bounds, N + 1 entries")
CHUNK_INDICES = HostArraySpec("chunk_indices", "(sequence, chunk) pairs of packed input")
CHUNK_SIZE = AttrSpec("chunk_size", "int", 64)
SCALE = AttrSpec("scale", "float")
STATE_V_FIRST = AttrSpec("state_v_first", "bool", False)
USE_EXP2 = AttrSpec("use_exp2", "bool", True)
LOWER_BOUND = AttrSpec("lower_bound", "float", -5.0)
PRECISE_RELAY = AttrSpec("precise_relay", "bool", False)


def _layout(name: str, default: str) -> AttrSpec:
    return AttrSpec(name, "str", default, LAYOUTS)


def _modes(*modes: str, l2norm: bool = False) -> Present:
    def present(values: Mapping[str, Any]) -> bool:
        if l2norm and not values["use_qk_l2norm_in_kernel"]:
            return False
        return values["backward_mode"] in modes

    return present


def _is_given(name: str) -> Present:
    return lambda values: values[name] is not None


def _is_true(name: str) -> Present:
    return lambda values: bool(values[name])


_RECOMPUTE = {"when": "backward_mode recompute, save", "present": _modes("recompute", "save")}
_RSTD = {
    "when": "backward_mode recompute, save, with use_qk_l2norm_in_kernel",
    "present": _modes("recompute", "save", l2norm=True),
}
_GATE = {"when": "use_gate_in_kernel", "present": _is_true("use_gate_in_kernel")}

_LOW_STATES = {"when": "k_low given", "present": _is_given("k_low")}

FWD_PREPARE = StageSpec(
    "fwd_prepare",
    "ChunkKdaFwdPrepare",
    inputs=(
        _tensor("q", "B Hk T K", "io", layout="layout"),
        _tensor("k", "B Hk T K", "io", layout="layout"),
        _tensor("v", "B Hv T V", "io", layout="layout"),
        _tensor("g", "B Hv T K", "io|fp32", layout="layout", note="raw gate, or log decay in nats"),
        _tensor("beta", "B Hv T", "io|fp32", layout="layout"),
        _tensor("a_log", "Hv", "fp32", optional=True),
        _tensor("dt_bias", "Hv K", "fp32", optional=True, flat=True),
        CU_SEQLENS,
        CHUNK_INDICES,
    ),
    attrs=(
        SCALE,
        CHUNK_SIZE,
        _layout("layout", "BNSD"),
        AttrSpec("epsilon", "float", 1e-6),
        AttrSpec("use_qk_l2norm_in_kernel", "bool", False),
        AttrSpec("use_gate_in_kernel", "bool", False),
        AttrSpec("use_beta_sigmoid_in_kernel", "bool", False),
        AttrSpec("allow_neg_eigval", "bool", False),
        AttrSpec("safe_gate", "bool", False),
        LOWER_BOUND,
        USE_EXP2,
        AttrSpec("backward_mode", "str", "save", BACKWARD_MODES),
        PRECISE_RELAY,
    ),
    outputs=(
        _tensor("gk", "B Hv T K", "fp32", note="cumulative gate in the chunk; unit: use_exp2"),
        _tensor("aqk", "B Hv T C", "io", note="scale inside"),
        _tensor(
            "akk",
            "B Hv T C",
            "io",
            optional=True,
            when="backward_mode forward, save",
            present=_modes("forward", "save"),
        ),
        _tensor("w", "B Hv T K", "io"),
        _tensor(
            "u",
            "B Hv T V",
            "io|fp32",
            wide=_is_true("precise_relay"),
            note="fp32 with precise_relay",
        ),
        _tensor(
            "qg",
            "B Hv T K",
            "io",
            optional=True,
            when="backward_mode save",
            present=_modes("save"),
        ),
        _tensor("kg", "B Hv T K", "io"),
        _tensor("qg_scaled", "B Hv T K", "io"),
        _tensor("q_hat", "B Hk T K", "io", optional=True, **_RECOMPUTE),
        _tensor("k_hat", "B Hk T K", "io", optional=True, **_RECOMPUTE),
        _tensor("q_rstd", "B Hk T", "fp32", optional=True, **_RSTD),
        _tensor("k_rstd", "B Hk T", "fp32", optional=True, **_RSTD),
        _tensor("beta_eff", "B Hv T", "fp32", optional=True, **_RECOMPUTE),
        _tensor(
            "kg_low",
            "B Hv T K",
            "io",
            optional=True,
            note="what rounding left of kg",
            when="precise_relay",
            present=_is_true("precise_relay"),
        ),
        _tensor(
            "k_hat_low",
            "B Hk T K",
            "io",
            optional=True,
            note="what rounding left of k_hat",
            when="precise_relay, backward_mode recompute, save, with use_qk_l2norm_in_kernel",
            present=lambda v: v["precise_relay"] and _RSTD["present"](v),
        ),
    ),
)

PRE_PROCESS_FWD = StageSpec(
    "pre_process_fwd",
    "ChunkKdaPreProcessFwd",
    inputs=(
        _tensor("k", "B Hv T K", "io", note="kg"),
        _tensor("w", "B Hv T K", "io"),
        _tensor("u", "B Hv T V", "io|fp32"),
        _tensor("gk", "B Hv T K", "fp32"),
        CU_SEQLENS,
    ),
    attrs=(CHUNK_SIZE, USE_EXP2),
    outputs=(_tensor("summary", "N Hv K V+K", "fp32", note="[E | M]"),),
)

FWD_H = StageSpec(
    "fwd_h",
    "ChunkKdaFwdH",
    inputs=(
        _tensor("k", "B Hv T K", "io", note="kg"),
        _tensor("w", "B Hv T K", "io"),
        _tensor("u", "B Hv T V", "io|fp32"),
        _tensor("gk", "B Hv T K", "fp32"),
        _tensor("initial_state", "N Hv K V", "io|fp32", optional=True, state=True),
        CU_SEQLENS,
        CHUNK_INDICES,
        _tensor("k_low", "B Hv T K", "io", optional=True, note="kg_low"),
    ),
    attrs=(CHUNK_SIZE, USE_EXP2, STATE_V_FIRST),
    outputs=(
        _tensor("h", "B Nc Hv K V", "io", state=True, note="state at chunk entry"),
        _tensor("v_new", "B Hv T V", "io"),
        _tensor(
            "final_state",
            "N Hv K V",
            "fp32",
            optional=True,
            state=True,
            when="output_final_state",
            present=_is_true("output_final_state"),
        ),
        _tensor(
            "h_low",
            "B Nc Hv K V",
            "io",
            optional=True,
            state=True,
            note="what rounding left of h",
            **_LOW_STATES,
        ),
    ),
    python_attrs=(AttrSpec("output_final_state", "bool", False),),
)

FWD_FINALIZE = StageSpec(
    "fwd_finalize",
    "ChunkKdaFwdFinalize",
    inputs=(
        _tensor("qg_scaled", "B Hv T K", "io"),
        _tensor("aqk", "B Hv T C", "io"),
        _tensor("v_new", "B Hv T V", "io"),
        _tensor("h", "B Nc Hv K V", "io", state=True),
        CU_SEQLENS,
        CHUNK_INDICES,
    ),
    attrs=(_layout("output_layout", "BSND"), STATE_V_FIRST),
    outputs=(_tensor("o", "B Hv T V", "io", layout="output_layout"),),
)

BWD_PREPARE = StageSpec(
    "bwd_prepare",
    "ChunkKdaBwdPrepare",
    inputs=(
        _tensor("aqk", "B Hv T C", "io"),
        _tensor("v_new", "B Hv T V", "io"),
        _tensor("d_o", "B Hv T V", "io", layout="layout"),
        _tensor("h", "B Nc Hv K V", "io", state=True),
        CU_SEQLENS,
        CHUNK_INDICES,
    ),
    attrs=(SCALE, _layout("layout", "BNSD"), CHUNK_SIZE, STATE_V_FIRST),
    outputs=(
        _tensor("d_aqk", "B Hv T C", "fp32"),
        _tensor("dv_local", "B Hv T V", "io"),
        _tensor("dq_raw", "B Hv T K", "fp32"),
    ),
)

PRE_PROCESS_BWD = StageSpec(
    "pre_process_bwd",
    "ChunkKdaPreProcessBwd",
    inputs=(
        _tensor("q", "B Hv T K", "io", note="qg"),
        _tensor("k", "B Hv T K", "io", note="kg"),
        _tensor("w", "B Hv T K", "io"),
        _tensor("d_o", "B Hv T V", "io", layout="layout"),
        _tensor("dv", "B Hv T V", "io", note="dv_local"),
        _tensor("gk", "B Hv T K", "fp32"),
        CU_SEQLENS,
    ),
    attrs=(SCALE, CHUNK_SIZE, _layout("layout", "BNSD"), USE_EXP2),
    outputs=(_tensor("summary", "Hv K V+K", "fp32", note="[Eb | Mb]; B must be 1"),),
)

BWD_DHU = StageSpec(
    "bwd_dhu",
    "ChunkKdaBwdDhu",
    inputs=(
        _tensor("q", "B Hv T K", "io", note="qg"),
        _tensor("k", "B Hv T K", "io", note="kg"),
        _tensor("w", "B Hv T K", "io"),
        _tensor("d_o", "B Hv T V", "io", layout="layout"),
        _tensor("dv", "B Hv T V", "io", note="dv_local"),
        _tensor("gk", "B Hv T K", "fp32"),
        _tensor("h0", "N Hv K V", "io|fp32", optional=True, state=True),
        _tensor("dht", "N Hv K V", "io|fp32", optional=True, state=True),
        CU_SEQLENS,
        CHUNK_INDICES,
        _tensor("k_low", "B Hv T K", "io", optional=True, note="kg_low"),
    ),
    attrs=(SCALE, CHUNK_SIZE, USE_EXP2, STATE_V_FIRST, _layout("layout", "BNSD")),
    outputs=(
        _tensor("dh", "B Nc Hv K V", "io", note="state gradient at chunk exit, K-first"),
        _tensor(
            "dh0",
            "N Hv K V",
            "fp32",
            optional=True,
            state=True,
            when="h0 given",
            present=_is_given("h0"),
        ),
        _tensor("dv_scan", "B Hv T V", "io"),
        _tensor(
            "dh_low",
            "B Nc Hv K V",
            "io",
            optional=True,
            note="what rounding left of dh",
            **_LOW_STATES,
        ),
    ),
)

BWD_FINALIZE = StageSpec(
    "bwd_finalize",
    "ChunkKdaBwdFinalize",
    inputs=(
        _tensor("q", "B Hk T K", "io", note="q_hat"),
        _tensor("k", "B Hk T K", "io", note="k_hat"),
        _tensor("v", "B Hv T V", "io", layout="input_layout"),
        _tensor("gk", "B Hv T K", "fp32"),
        _tensor("raw_g", "B Hv T K", "io|fp32", layout="input_layout"),
        _tensor("beta", "B Hv T", "fp32", note="beta_eff"),
        _tensor("a_log", "Hv", "fp32", optional=True),
        _tensor("dt_bias", "Hv K", "fp32", optional=True, flat=True),
        _tensor("akk", "B Hv T C", "io"),
        _tensor("v_new", "B Hv T V", "io"),
        _tensor("h", "B Nc Hv K V", "io", state=True),
        _tensor("dh", "B Nc Hv K V", "io"),
        _tensor("dv_scan", "B Hv T V", "io"),
        _tensor("d_aqk", "B Hv T C", "fp32"),
        _tensor("dq_raw", "B Hv T K", "fp32"),
        _tensor("q_rstd", "B Hk T", "fp32", optional=True),
        _tensor("k_rstd", "B Hk T", "fp32", optional=True),
        CU_SEQLENS,
        CHUNK_INDICES,
        _tensor("k_low", "B Hk T K", "io", optional=True, note="k_hat_low"),
        _tensor("h_low", "B Nc Hv K V", "io", optional=True, state=True),
        _tensor("dh_low", "B Nc Hv K V", "io", optional=True),
    ),
    attrs=(
        SCALE,
        LOWER_BOUND,
        CHUNK_SIZE,
        AttrSpec("safe_gate", "bool", True),
        AttrSpec("use_gate_in_kernel", "bool", True),
        USE_EXP2,
        STATE_V_FIRST,
        AttrSpec("use_beta_sigmoid_in_kernel", "bool", False),
        AttrSpec("allow_neg_eigval", "bool", False),
        _layout("output_layout", "BNSD"),
        _layout("input_layout", "BNSD"),
    ),
    outputs=(
        _tensor("dq", "B Hk T K", "io", layout="output_layout"),
        _tensor("dk", "B Hk T K", "io", layout="output_layout"),
        _tensor("dv", "B Hv T V", "io", layout="output_layout"),
        _tensor("dbeta", "B Hv T", "fp32", layout="output_layout"),
        _tensor("dg", "B Hv T K", "=raw_g", layout="output_layout"),
        _tensor("da_log", "Hv", "fp32", optional=True, **_GATE),
        _tensor("ddt_bias", "Hv K", "fp32", optional=True, **_GATE),
    ),
)

MERGE_FWD_BWD = StageSpec(
    "merge_fwd_bwd",
    "ChunkKdaMergeFwdBwd",
    inputs=(
        _tensor("state", "Hv K V", "fp32", state=True, note="updated in place"),
        _tensor("summaries", "R Hv K V+K", "fp32"),
    ),
    attrs=(
        AttrSpec("pre_or_post_num_ranks", "int"),
        AttrSpec("rank", "int"),
        AttrSpec("forward", "bool", True),
        STATE_V_FIRST,
    ),
    outputs=(_tensor("state", "Hv K V", "fp32", state=True),),
    in_place="state",
)

STAGES: tuple[StageSpec, ...] = (
    FWD_PREPARE,
    PRE_PROCESS_FWD,
    FWD_H,
    FWD_FINALIZE,
    BWD_PREPARE,
    PRE_PROCESS_BWD,
    BWD_DHU,
    BWD_FINALIZE,
    MERGE_FWD_BWD,
)
STAGE_BY_NAME: dict[str, StageSpec] = {stage.name: stage for stage in STAGES}


def ordered_dims(
    dims: tuple[str, ...], layout: str = "BNSD", v_first: bool = False
) -> tuple[str, ...]:
    """The symbols of ``dims`` in the order in which memory holds them."""
    if v_first:
        dims = dims[:-2] + (dims[-1], dims[-2])
    if layout == "BNSD":
        return dims
    if layout == "BSND":
        return (dims[0], dims[2], dims[1]) + dims[3:]
    if layout == "NTD":
        return dims[1:]
    if layout == "TND":
        return (dims[2], dims[1]) + dims[3:]
    raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")


def evaluate_dims(dims: tuple[str, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Numbers for the symbols; ``V+K`` is a sum of symbols."""
    return tuple(sum(sizes[part] for part in dim.split("+")) for dim in dims)


def placed_dims(
    spec: TensorSpec, values: Mapping[str, Any], rank3: bool = False
) -> tuple[str, ...]:
    """The symbols of a tensor's axes, given the call's attribute values. ``rank3``: without a batch
    axis, which layout attributes say already where a stage has them."""
    layout = "BNSD"
    if spec.layout:
        layout = values[spec.layout]
    elif rank3 and "T" in spec.dims:
        layout = "NTD"
    return ordered_dims(spec.dims, layout, spec.state and bool(values.get("state_v_first", False)))


def output_shape(
    spec: TensorSpec, values: Mapping[str, Any], sizes: Mapping[str, int], rank3: bool = False
) -> tuple[int, ...]:
    """Shape of an output, given the call's attribute values and the dimension sizes."""
    return evaluate_dims(placed_dims(spec, values, rank3), sizes)


def is_present(spec: TensorSpec, values: Mapping[str, Any]) -> bool:
    return spec.present is None or spec.present(values)


def _shape_text(spec: TensorSpec) -> str:
    text = "[" + ", ".join(spec.dims) + "]"
    return f"{text} in {spec.layout}" if spec.layout else text


def _row(kind: str, name: str, shape: str, dtype: str, note: str) -> str:
    cells = (text.replace("|", "\\|") for text in (shape, dtype.replace("|", " or "), note))
    return f"| {kind} | `{name}` | " + " | ".join(cells) + " |"


def markdown() -> str:
    """The table of ``docs/stages.md``."""
    lines = []
    for number, stage in enumerate(STAGES, 1):
        lines += [
            f"### {number}. `{stage.function}` (`{stage.symbol}`)",
            "",
            "| | name | shape | dtype or type | notes |",
            "|---|---|---|---|---|",
        ]
        for spec in stage.inputs:
            if isinstance(spec, HostArraySpec):
                lines.append(_row("in", spec.name, "list", "int64", f"optional; {spec.note}"))
                continue
            notes = ["optional"] if spec.optional else []
            notes += ["or flat [Hv*K]"] if spec.flat else []
            notes += ["[.., V, K] with state_v_first"] if spec.state else []
            notes += [spec.note] if spec.note else []
            dtype = spec.dtype
            lines.append(_row("in", spec.name, _shape_text(spec), dtype, "; ".join(notes)))
        for attr in stage.attrs:
            if attr.default is REQUIRED:
                default = "required"
            else:
                default = f"default `{attr.default}`"
            lines.append(_row("attr", attr.name, "", attr.kind, default))
        for spec in stage.outputs:
            notes = [f"with {spec.when}"] if spec.optional else []
            notes += [spec.note] if spec.note else []
            notes += ["the input, in place"] if stage.in_place == spec.name else []
            dtype = f"that of {spec.dtype[1:]}" if spec.dtype.startswith("=") else spec.dtype
            lines.append(_row("out", spec.name, _shape_text(spec), dtype, "; ".join(notes)))
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(markdown())
