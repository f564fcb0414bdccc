# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Microseconds a token and head of every stage and of the whole op, on this machine.

    python -m benchmarks.bench_stages [--batch 1] [--heads 4] [--tokens 1024] [--repeats 15]

Beside the kernels (through the public Python API, on the simulator): the same mathematics in
float32 NumPy with BLAS, and the time that float32 matmul at its measured peak would need for the
floating-point operations of the chunk algorithm, all in one run. Times are the shortest of the
repeats. The thread counts take turns, call by call, and a kernel's speed-up is the median over
these pairs, so that what disturbs the machine disturbs both sides.
"""

import argparse
import ctypes
import datetime
import functools
import os
import shlex
import sys
import time

import numpy as np

from benchmarks import blas, numpy_chunk
from tests.support import inputs

FORWARD_FLOP = 188_416  # a token and head, K = V = 128, chunks of 64
TRAINING_FLOP = 565_248  # forward and backward


@functools.cache
def _set_up(ms):
    """Once a process: MindSpore refuses to be told twice."""
    ms.set_device("CPU")
    # Else MindSpore's dispatch and kernel threads spin on the cores that the op's threads need.
    ms.runtime.launch_blocking()
    ms.runtime.dispatch_threads_num(1)


class Kernels:
    """Calls of the stages and of the whole op on one set of inputs."""

    def __init__(self, x):
        import mindspore as ms

        import hyper_parallel_kda as kda
        from hyper_parallel_kda import loader
        from tests.support import chain

        _set_up(ms)
        self.kda, self.chain, self.ms, self.x = kda, chain, ms, x
        self.named = chain.tensors(x)
        self.set_threads = ctypes.CDLL(loader.op_library_path()).ascendSimSetThreads
        self.d_o = chain.tensor(np.swapaxes(x.d_o, 1, 2), ms.bfloat16)
        self.dht = chain.tensor(x.dht)
        self.stages = self._stages()

    def _stages(self):
        """Stage name -> call, with the inputs that the chain would give it."""
        kda, x, n = self.kda, self.x, self.named
        gates = self.chain.gate_options()
        gates.update({name: x.options[name] for name in gates if name in x.options})

        def prepare():
            return kda.npu_chunk_kda_fwd_prepare(
                n["q"],
                n["k"],
                n["v"],
                n["g"],
                n["beta"],
                x.scale,
                layout="BSND",
                a_log=n["a_log"],
                dt_bias=n["dt_bias"],
                **{**x.options, **gates},
            )

        gk, aqk, akk, w, u, qg, kg, qg_scaled, q_hat, k_hat, q_rstd, k_rstd, beta = prepare()

        def summary():
            return kda.npu_chunk_kda_pre_process_fwd(kg, w, u, gk=gk)

        def state():
            return kda.npu_chunk_kda_fwd_h(
                kg, w, u, gk=gk, initial_state=n["initial_state"], output_final_state=True
            )

        h, v_new, final_state = state()

        def finalize():
            return kda.npu_chunk_kda_fwd_finalize(qg_scaled, aqk, v_new, h)

        def bwd_prepare():
            return kda.npu_chunk_kda_bwd_prepare(
                aqk, v_new, self.d_o, h, scale=x.scale, layout="BSND"
            )

        d_aqk, dv_local, dq_raw = bwd_prepare()

        def bwd_summary():
            return kda.npu_chunk_kda_pre_process_bwd(
                qg, kg, w, self.d_o, dv_local, x.scale, gk=gk, layout="BSND"
            )

        def bwd_state():
            return kda.npu_chunk_kda_bwd_dhu(
                qg,
                kg,
                w,
                self.d_o,
                dv_local,
                x.scale,
                gk=gk,
                h0=n["initial_state"],
                dht=self.dht,
                layout="BSND",
            )

        dh, _, dv_scan = bwd_state()

        def bwd_finalize():
            return kda.npu_chunk_kda_bwd_finalize(
                q_hat,
                k_hat,
                n["v"],
                gk,
                n["g"],
                beta,
                n["a_log"],
                n["dt_bias"],
                akk,
                v_new,
                h,
                dh,
                dv_scan,
                d_aqk,
                dq_raw,
                scale=x.scale,
                q_rstd=q_rstd,
                k_rstd=k_rstd,
                output_layout="BSND",
                input_layout="BSND",
                use_beta_sigmoid_in_kernel=x.options["use_beta_sigmoid_in_kernel"],
                **gates,
            )

        # Two ranks with the same part of a sequence: the merge of the second one.
        merged, one_rank = final_state[0], self.chain.array(summary()[0])[:1]
        summaries = self.chain.tensor(np.concatenate([one_rank, one_rank]))

        def merge():
            return kda.npu_chunk_kda_merge_fwd_bwd(merged, summaries, 1, 1)

        stages = {
            "fwd_prepare": prepare,
            "fwd_h": state,
            "fwd_finalize": finalize,
            "bwd_prepare": bwd_prepare,
            "bwd_dhu": bwd_state,
            "bwd_finalize": bwd_finalize,
            "pre_process_fwd": summary,
            "merge_fwd_bwd": merge,
        }
        if x.q.shape[0] == 1:
            stages["pre_process_bwd"] = bwd_summary
        return stages

    def forward(self):
        """npu_chunk_kda without a gradient to follow."""
        return self.chain.call(self.x, self.named)

    def training(self):
        """npu_chunk_kda and its backward, with given upstream gradients."""
        names = [n for n in self.chain.TENSORS if self.named[n] is not None]

        def call(*values):
            return self.chain.call(self.x, dict(zip(names, values, strict=True)))

        if not hasattr(self, "_training"):
            gradient = self.ms.ops.GradOperation(get_all=True, sens_param=True)(call)
            self._training = lambda: gradient(*[self.named[n] for n in names], (self.d_o, self.dht))
        return self._training()


def measure_kernels(x, thread_counts, repeats, clock):
    """{row: {threads: seconds}} and {row: speed-up of the last thread count over the first}"""
    kernels = Kernels(x)
    rows, gains = {}, {}
    calls = {**kernels.stages, "forward": kernels.forward, "forward + backward": kernels.training}

    def timed(call, threads):
        if kernels.set_threads(threads) != 0:
            raise RuntimeError(f"ascendSimSetThreads({threads}) failed")
        call()  # afterwards every thread's cache holds what it holds in a loop of such calls
        before = clock()
        call()
        return clock() - before

    for name, call in calls.items():
        turns = [[timed(call, n) for n in thread_counts] for _ in range(repeats)]
        rows[name] = dict(zip(thread_counts, np.min(turns, axis=0), strict=True))
        gains[name] = np.median([turn[0] / turn[-1] for turn in turns])
    return rows, gains


def measure_numpy(x, thread_counts, repeats, clock):
    rows, peaks = {"forward": {}, "forward + backward": {}}, {}

    def forward():
        return numpy_chunk.forward(
            x.q, x.k, x.v, x.g, x.beta, x.scale, x.a_log, x.dt_bias, x.initial_state
        )

    def training():
        numpy_chunk.backward(forward()[2], x.d_o, x.dht)

    for threads in thread_counts:
        blas.set_threads(threads)
        peaks[threads] = blas.sgemm_peak(clock=clock)
        rows["forward"][threads] = blas.best_time(forward, repeats, clock=clock)
        rows["forward + backward"][threads] = blas.best_time(training, repeats, clock=clock)
        peaks[threads] = max(peaks[threads], blas.sgemm_peak(clock=clock))
    return rows, peaks


def report(kernels, gains, numpy_rows, peaks, x, thread_counts):
    batch, heads, tokens, _ = x.g.shape
    per = 1e6 / (batch * heads * tokens)
    command = shlex.join(["python", "-m", "benchmarks.bench_stages", *sys.argv[1:]])
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = f"{os.cpu_count()} hardware threads"
    print(f"`{command}`, {stamp}, {machine}, B={batch} H={heads} T={tokens}\n")
    head = [f"{n} thread{'s' if n > 1 else ''}" for n in thread_counts]
    print("| us a token-head | " + " | ".join(head) + " | speed-up |")
    print("|---" * (len(thread_counts) + 2) + "|")

    def row(name, times, gain=None):
        cells = [f"{per * times[n]:.2f}" for n in thread_counts]
        gain = gain or times[thread_counts[0]] / times[thread_counts[-1]]
        print(f"| {name} | " + " | ".join(cells) + f" | {gain:.2f} |")

    for name, times in kernels.items():
        kind = "" if name.startswith("forward") else "stage "
        row(kind + name, times, gains[name])
    for name, times in numpy_rows.items():
        row(f"NumPy float32, {name}", times)
    token_heads = batch * heads * tokens
    budgets = {"forward": (FORWARD_FLOP, 12), "forward + backward": (TRAINING_FLOP, 14)}
    ideal = {
        name: {n: token_heads * flop / peaks[n] for n in thread_counts}
        for name, (flop, _) in budgets.items()
    }
    for name, (flop, _) in budgets.items():
        row(f"{flop:,} FLOP at sgemm's peak ({name})", ideal[name])
    print()
    for n, text in zip(thread_counts, head, strict=True):
        print(f"* sgemm, {text}: {peaks[n] / 1e9:.1f} GFLOP/s")
        for name, (_, bound) in budgets.items():
            ratio = kernels[name][n] / ideal[name][n]
            note = f" (bound: {bound})" if n == 1 else ""
            print(f"  * {name}: {ratio:.1f} x the time of sgemm at its peak{note}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="one thread only, in the process's CPU time: for a machine that others use as well",
    )
    args = parser.parse_args(arguments)
    clock = time.perf_counter
    if args.cpu_time:
        args.threads, clock = [1], time.process_time
    x = inputs.make_inputs(
        0, args.batch, args.tokens, args.heads, decay="medium", initial_state=True
    )
    numpy_rows, peaks = measure_numpy(x, args.threads, args.repeats, clock)
    kernels, gains = measure_kernels(x, args.threads, args.repeats, clock)
    report(kernels, gains, numpy_rows, peaks, x, args.threads)


if __name__ == "__main__":
    main()
