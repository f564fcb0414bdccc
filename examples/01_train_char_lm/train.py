# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Train a small KDA language model on Python's own sources, and check what its state is worth.

Exits with 1 and a message when the model does not beat the order-2 character model, or when cutting
its state costs it less than 0.2 nats.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import ngram
import numpy as np
from corpus import ALPHABET, VOCAB_SIZE, Corpus, decode, encode, load_corpus
from figures import draw_losses, loss_table, save_results
from tqdm import tqdm

# MindSpore reads it when it is imported: its advice on thread pools would break the progress bar.
os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
from char_lm import CharLm, Memory, ModelConfig  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

MAX_ORDER = 3
# The criteria of this example.
BEAT_ORDER = 2
MIN_RISE_WHEN_CUT = 0.2


def parse_arguments(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/01_train_char_lm"))
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument(
        "--time-limit",
        type=float,
        default=125.0,
        help="seconds of training at most: a slower machine gets a shorter schedule",
    )
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=128, help="characters in a training window")
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--warm-up", type=int, default=40)
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradient")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--mlp-width", type=int, default=256)
    parser.add_argument("--held-out", type=int, default=32768, help="characters of the last test")
    parser.add_argument("--sample", type=int, default=300, help="characters to write at the end")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


class WindowSampler:
    """Windows from random places of a text: inputs and the same shifted by one."""

    def __init__(self, text: np.ndarray, batch: int, tokens: int, seed: int):
        if len(text) <= tokens:
            raise ValueError(
                f"text: expected more than the {tokens} characters of a window, got {len(text)}"
            )
        self.text = text
        self.rng = np.random.default_rng(seed)
        self.batch = batch
        self.span = np.arange(tokens + 1)

    def next(self) -> tuple[Tensor, Tensor]:
        starts = self.rng.integers(0, len(self.text) - len(self.span) + 1, (self.batch, 1))
        window = self.text[starts + self.span].astype(np.int32)
        return Tensor(window[:, :-1].copy()), Tensor(window[:, 1:].reshape(-1))


class Trainer:
    """AdamW with a clipped gradient; weight decay on matrices alone."""

    def __init__(self, model: CharLm, weight_decay: float, clip: float):
        self.model = model
        self.clip = clip
        self.cross_entropy = ops.SparseSoftmaxCrossEntropyWithLogits()
        self.weights = model.trainable_params()
        matrices = [p for p in self.weights if p.ndim == 2 and "dt_bias" not in p.name]
        others = [p for p in self.weights if not any(p is m for m in matrices)]
        self.optimizer = nn.AdamWeightDecay(
            [
                {"params": matrices, "weight_decay": weight_decay},
                {"params": others, "weight_decay": 0.0},
                {"order_params": self.weights},
            ],
            learning_rate=0.0,
            beta2=0.95,
            eps=1e-8,
        )
        self.loss_and_gradients = ms.value_and_grad(self._loss, None, self.weights)

    def _loss(self, ids, targets):
        logits, _ = self.model(ids, self.model.start())
        return self.cross_entropy(logits, targets)

    def step(self, ids: Tensor, targets: Tensor, learning_rate: float) -> float:
        """One update; returns the loss before it."""
        loss, gradients = self.loss_and_gradients(ids, targets)
        norm = np.sqrt(sum(float(np.vdot(g.asnumpy(), g.asnumpy())) for g in gradients))
        if not np.isfinite(norm):
            raise FloatingPointError(f"the gradient's norm is {norm} (loss {float(loss)})")
        if norm > self.clip:
            gradients = tuple(g * (self.clip / norm) for g in gradients)
        ops.assign(self.optimizer.learning_rate, Tensor(learning_rate, ms.float32))
        self.optimizer(gradients)
        return float(loss)


class HeldOutTest:
    """Mean loss over the same places of the held-out text, for the model and for the n-grams."""

    def __init__(self, text: np.ndarray, characters: int, streams: int = 16, piece: int = 256):
        self.piece = min(piece, max(1, characters // streams))
        self.pieces = max(1, characters // (streams * self.piece))
        length = self.pieces * self.piece
        room = len(text) - MAX_ORDER - length
        if room < 1:
            raise ValueError(
                f"characters: expected at most {len(text) - MAX_ORDER - 1} in each of {streams} "
                f"streams of the held-out text, got {length}"
            )
        self.text = text
        # Of the first character a stream predicts, every n-gram knows its whole context; the model
        # knows one character.
        self.starts = MAX_ORDER - 1 + np.linspace(0, room, streams).astype(np.int64)
        self.positions = (self.starts[:, None] + 1 + np.arange(length)).reshape(-1)
        self.cross_entropy = ops.SparseSoftmaxCrossEntropyWithLogits()

    def loss(self, model: CharLm, memory: Memory = Memory.FULL, pieces: int | None = None):
        """Mean loss in nats; the state goes from piece to piece, so memory is not bounded."""
        state = model.start()
        total = 0.0
        pieces = self.pieces if pieces is None else min(pieces, self.pieces)
        for number in range(pieces):
            index = self.starts[:, None] + number * self.piece + np.arange(self.piece + 1)
            window = self.text[index].astype(np.int32)
            logits, state = model(Tensor(window[:, :-1].copy()), state, memory)
            total += float(self.cross_entropy(logits, Tensor(window[:, 1:].reshape(-1))))
        return total / pieces


def learning_rate_at(progress: float, step: int, peak: float, warm_up: int) -> float:
    """Linear warm-up, then a straight line to zero at progress 1."""
    return peak * min(1.0, (step + 1) / max(1, warm_up)) * max(0.0, 1.0 - progress)


def train(trainer: Trainer, sampler: WindowSampler, test: HeldOutTest, options) -> dict:
    """Run the schedule; returns the losses by characters seen."""
    history = {
        "train_characters": [],
        "train_losses": [],
        "held_out_characters": [],
        "held_out_losses": [],
    }
    per_step = options.batch * options.tokens
    begin = time.perf_counter()
    next_test = 0.1
    testing = 0.0
    smoothed = None
    step = 0
    with tqdm(total=options.steps, unit="step", dynamic_ncols=True) as bar:
        while True:
            elapsed = time.perf_counter() - begin
            progress = max(step / options.steps, elapsed / options.time_limit)
            if progress >= 1.0:
                break
            rate = learning_rate_at(progress, step, options.learning_rate, options.warm_up)
            loss = trainer.step(*sampler.next(), rate)
            step += 1
            smoothed = loss if smoothed is None else 0.95 * smoothed + 0.05 * loss
            history["train_characters"].append(step * per_step)
            history["train_losses"].append(loss)
            speed = step * per_step / (time.perf_counter() - begin - testing)
            bar.set_postfix(loss=f"{smoothed:.3f}", tokens_per_s=f"{speed:.0f}", refresh=False)
            bar.update()
            if progress >= next_test:
                paused = time.perf_counter()
                history["held_out_characters"].append(step * per_step)
                history["held_out_losses"].append(test.loss(trainer.model, pieces=1))
                testing += time.perf_counter() - paused
                next_test += 0.1
    history["seconds"] = time.perf_counter() - begin
    history["characters_per_second"] = step * per_step / (history["seconds"] - testing)
    return history


def sample_text(model: CharLm, prompt: str, count: int, seed: int, temperature: float = 0.7):
    """Continue a prompt, one character a call, the state carried from call to call."""
    rng = np.random.default_rng(seed)
    ids = encode(prompt).astype(np.int32)
    state = model.start()
    written = []
    feed = ids[None, :]
    for _ in range(count):
        logits, state = model(Tensor(feed), state)
        scores = logits.asnumpy()[-1].astype(np.float64) / temperature
        scores = np.exp(scores - scores.max())
        written.append(int(rng.choice(len(ALPHABET), p=scores / scores.sum())))
        feed = np.array([[written[-1]]], np.int32)
    return prompt + decode(written)


def failures(results: dict) -> list[str]:
    """One sentence for each criterion that is not met."""
    found = []
    rival = results["ngram_losses"][BEAT_ORDER]
    if not results["held_out_loss"] < rival:
        found.append(
            f"held-out loss: expected less than the order-{BEAT_ORDER} model's {rival:.3f} nats, "
            f"got {results['held_out_loss']:.3f}"
        )
    rise = results["cut_loss"] - results["held_out_loss"]
    if not rise >= MIN_RISE_WHEN_CUT:
        found.append(
            f"state cut at evaluation: expected the loss to rise by at least {MIN_RISE_WHEN_CUT} "
            f"nats, got {rise:.3f}"
        )
    return found


def describe(corpus: Corpus) -> str:
    return (
        f"corpus: {len(corpus.train_files)} library modules to train on "
        f"({len(corpus.train):,} characters), {len(corpus.held_out_files)} held out "
        f"({len(corpus.held_out):,} characters)"
    )


def main(arguments=None) -> int:
    begin = time.perf_counter()
    options = parse_arguments(arguments)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    # MindSpore's dispatch and kernel threads otherwise spin against each other and against the op's
    # threads: on two cores a step takes several times as long.
    ms.runtime.launch_blocking()
    ms.runtime.dispatch_threads_num(1)
    ms.set_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    corpus = load_corpus()
    print(describe(corpus), flush=True)
    ngrams = ngram.fit_ngrams(corpus.train, 0.1, MAX_ORDER, VOCAB_SIZE)
    test = HeldOutTest(corpus.held_out, options.held_out)
    ngram_losses = ngrams.losses(corpus.held_out, test.positions)
    config = ModelConfig(
        vocab_size=VOCAB_SIZE,
        width=options.width,
        heads=options.heads,
        layers=options.layers,
        mlp_width=options.mlp_width,
    )
    model = CharLm(config, options.seed)
    parameters = sum(parameter.size for parameter in model.trainable_params())
    print(
        f"model: {options.layers} KDA layers of {options.heads} head(s), {parameters:,} parameters",
        flush=True,
    )

    trainer = Trainer(model, options.weight_decay, options.clip)
    sampler = WindowSampler(corpus.train, options.batch, options.tokens, options.seed)
    history = train(trainer, sampler, test, options)

    results = {
        "held_out_loss": test.loss(model),
        "cut_loss": test.loss(model, Memory.CUT),
        "faded_loss": test.loss(model, Memory.FADED),
        "ngram_losses": ngram_losses,
        "ngram_discounts": ngrams.discounts,
        "parameters": parameters,
        "steps": len(history["train_losses"]),
        "train_characters": history["train_characters"][-1],
        "held_out_characters": len(test.positions),
        "train_seconds": history["seconds"],
        "characters_per_second": history["characters_per_second"],
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    draw_losses(options.out / "loss.png", history, ngram_losses)
    sample = sample_text(model, "def ", options.sample, options.seed)
    results["wall_seconds"] = time.perf_counter() - begin
    save_results(options.out, results, sample)

    print(f"\n{sample}\n\n{loss_table(results)}\n")
    print(
        f"{results['train_characters']:,} characters in {results['train_seconds']:.0f} s of "
        f"training ({results['characters_per_second']:.0f} a second), "
        f"{results['wall_seconds']:.0f} s in all; files in {options.out}"
    )
    problems = failures(results)
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    if problems and results["steps"] < options.steps:
        print(
            f"The time limit ended the schedule after {results['steps']} of {options.steps} steps; "
            "give it more with --time-limit.",
            file=sys.stderr,
        )
    if not problems:
        rise = results["cut_loss"] - results["held_out_loss"]
        print(
            f"OK: {results['held_out_loss']:.3f} is below the order-{BEAT_ORDER} model's "
            f"{ngram_losses[BEAT_ORDER]:.3f}, and cutting the state costs {rise:.3f} nats."
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
