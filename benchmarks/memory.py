# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Bytes that stay alive between forward and backward, and the peak memory of a training step.

    python -m benchmarks.memory [--tokens 8192] [--heads 2] [--layers 4]

Kept bytes are counted from the tensors that the op saves, a token and value head, beside what a
design keeps that saves every slot of fwd_prepare, h, v_new and the inputs (or, recomputing, the
inputs). Peak memory: the largest resident set of a fresh process that runs one training step of a
stack of layers, each fed by the one before, and what of it the step has added to the inputs.
"""

import argparse
import gc
import json
import subprocess
import sys

MODES = ("saved", "recompute")
PRECISE = "saved, precise_relay"
GATES = ("float32", "bfloat16")


def _inputs(tokens, heads, gate):
    import mindspore as ms

    from tests.support import chain, inputs

    x = inputs.make_inputs(0, 1, tokens, heads, decay="medium", initial_state=True)
    return x, chain.tensors(x, gate_dtype=getattr(ms, gate))


def _size(tensors):
    return {name: t.numel() * t.itemsize for name, t in tensors.items() if t is not None}


def _run_layers(x, named, layers, mode):
    """One training step; the gradient of v goes through every layer."""
    import mindspore as ms

    from tests.support import chain

    def loss(v, a_log):
        total = 0.0
        for _ in range(layers):
            now = {**named, "v": v, "a_log": a_log}
            v, state = chain.call(x, now, disable_recompute=mode == "saved")
            total = total + state.sum()
        return v.astype(ms.float32).sum() + total

    value, _ = ms.value_and_grad(loss, (0, 1))(named["v"], named["a_log"])
    return float(value.asnumpy())


def kept(tokens, heads, gate, mode):
    """{tensor: bytes} that one forward keeps."""
    from hyper_parallel_kda import chunk_kda_autograd as autograd

    x, named = _inputs(tokens, heads, gate)
    seen = []
    original = autograd.kept_for_backward

    def record(*arguments):
        seen.append(original(*arguments))
        return seen[-1]

    autograd.kept_for_backward = record
    try:
        _every_gradient(x, named, mode)
    finally:
        autograd.kept_for_backward = original
    return _size(seen[0])


def _every_gradient(x, named, mode):
    import mindspore as ms

    from tests.support import chain

    def loss(*values):
        now = dict(zip(named, values, strict=True))
        options = dict(disable_recompute=mode != "recompute", precise_relay=mode == PRECISE)
        output, state = chain.call(x, now, **options)
        return output.astype(ms.float32).sum() + state.sum()

    ms.grad(loss, tuple(range(len(named))))(*named.values())


def kept_by_saving_everything(tokens, heads, gate, mode):
    """{tensor: bytes} of the slots of fwd_prepare, h, v_new and the inputs; or of the inputs."""
    import hyper_parallel_kda as kda
    from hyper_parallel_kda.stage_table import FWD_PREPARE
    from tests.support import chain

    x, named = _inputs(tokens, heads, gate)
    sizes = _size(named)
    if mode == "recompute":
        return sizes
    slots = kda.npu_chunk_kda_fwd_prepare(
        *(named[name] for name in ("q", "k", "v", "g", "beta")),
        x.scale,
        layout="BSND",
        a_log=named["a_log"],
        dt_bias=named["dt_bias"],
        precise_relay=mode == PRECISE,
        **x.options,
        **chain.gate_options(),
    )
    caches = dict(zip((spec.name for spec in FWD_PREPARE.outputs), slots, strict=False))
    h, v_new, _, *low = kda.npu_chunk_kda_fwd_h(
        caches["kg"],
        caches["w"],
        caches["u"],
        gk=caches["gk"],
        k_low=caches.get("kg_low"),
    )
    states = {"h": h, "h_low": low[0] if low else None}
    return {**sizes, **_size({**caches, **states, "v_new": v_new})}


def _print_kept(heads):
    tokens = 1024
    print("Bytes a token and head between forward and backward, inputs that are kept among them;")
    print("initial state, a_log and dt_bias, which do not grow with T, are left out:\n")
    print("| mode | gate | here | saving everything |\n|---|---|---|---|")
    for mode in (*MODES, PRECISE):
        for gate in GATES:
            rows = []
            for count in (kept, kept_by_saving_everything):
                sizes = count(tokens, heads, gate, mode)
                grow = {n for n in sizes if n not in ("initial_state", "a_log", "dt_bias")}
                rows.append(sum(sizes[name] for name in grow) / (tokens * heads))
            mark = "" if rows[0] <= rows[1] else "  <- MORE"
            print(f"| {mode} | {gate} | {rows[0]:,.0f} | {rows[1]:,.0f}{mark} |")
    sizes = kept(tokens, heads, "bfloat16", "saved")
    parts = ", ".join(f"{n} {s / (tokens * heads):g}" for n, s in sizes.items())
    print(f"\nsaved, bfloat16 gate: {parts}\n")


def _status(name):
    """A memory figure of this process in KiB."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def _step(tokens, heads, layers, mode):
    """In a fresh process: KiB resident before the step, with its inputs, and at the step's peak."""
    warm = _inputs(64, heads, "bfloat16")
    _run_layers(*warm, 1, mode)
    x, named = _inputs(tokens, heads, "bfloat16")
    gc.collect()
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # the peak counts from here: making the inputs took more than their size
    before = _status("VmRSS")
    value = _run_layers(x, named, layers, mode)
    print(json.dumps(dict(before=before, peak=_status("VmHWM"), value=value)))


def step_in_a_fresh_process(tokens, heads, layers, mode):
    command = [sys.executable, "-m", "benchmarks.memory", "--step", mode]
    command += ["--tokens", str(tokens), "--heads", str(heads), "--layers", str(layers)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(lines.splitlines()[-1])


def _print_peaks(tokens, heads, layers):
    print(f"Peak resident set of one training step, T={tokens} H={heads}, bfloat16 gate:\n")
    print("| layers | mode | peak MiB | added by the step, MiB | bytes a token, head and layer |")
    print("|---|---|---|---|---|")
    for count in sorted({1, layers}):
        values = []
        for mode in MODES:
            run = step_in_a_fresh_process(tokens, heads, count, mode)
            values.append(run["value"])
            added = run["peak"] - run["before"]
            per_layer = added * 1024 / (tokens * heads * count)
            columns = (f"{run['peak'] / 1024:,.0f}", f"{added / 1024:,.0f}", f"{per_layer:,.0f}")
            print(f"| {count} | {mode} | {' | '.join(columns)} |")
        assert values[0] == values[1], "the modes differ in their loss"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--step", choices=MODES, help="one step in this process, for the peaks")
    args = parser.parse_args(arguments)
    import mindspore as ms

    ms.set_device("CPU")
    if args.step:
        _step(args.tokens, args.heads, args.layers, args.step)
        return
    _print_kept(args.heads)
    _print_peaks(args.tokens, args.heads, args.layers)


if __name__ == "__main__":
    main()
