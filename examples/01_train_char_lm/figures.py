# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What the run leaves behind: the loss curve, the table of figures, the sampled text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def smooth(values: list[float], window: int = 25) -> np.ndarray:
    """Mean over the last `window` values, or over as many as there are."""
    sums = np.cumsum(np.concatenate(([0.0], values)))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def draw_losses(path: Path, history: dict, ngram_losses: list[float]) -> None:
    """Training and held-out loss over characters seen, with the n-gram models as lines."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5))
    seen = np.asarray(history["train_characters"]) / 1e3
    axes.plot(seen, history["train_losses"], color="0.85", linewidth=0.8)
    axes.plot(seen, smooth(history["train_losses"]), color="C0", label="KDA model, training text")
    axes.plot(
        np.asarray(history["held_out_characters"]) / 1e3,
        history["held_out_losses"],
        "o-",
        color="C3",
        label="KDA model, held-out files",
    )
    for order, loss in enumerate(ngram_losses):
        axes.axhline(loss, color="0.3", linestyle=(0, (1 + 2 * order, 2)), linewidth=0.9)
        axes.text(seen[-1], loss, f"order {order}", ha="right", va="bottom", fontsize=8)
    axes.set_xlabel("characters seen (thousands)")
    axes.set_ylabel("nats a character")
    axes.set_ylim(1.2, 4.0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def loss_table(results: dict) -> str:
    """The losses side by side, as a Markdown table."""
    rows = [
        (f"n-gram model, order {order}", loss) for order, loss in enumerate(results["ngram_losses"])
    ]
    rows += [
        ("KDA model", results["held_out_loss"]),
        ("KDA model, state cut (beta = 0)", results["cut_loss"]),
        ("KDA model, state fades at once (decay e^-5 a character)", results["faded_loss"]),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"| {'held-out loss':{width}} |  nats |", f"|{'-' * (width + 2)}|------:|"]
    lines += [f"| {name:{width}} | {loss:.3f} |" for name, loss in rows]
    return "\n".join(lines)


def save_results(folder: Path, results: dict, sample: str) -> None:
    """figures.json, figures.md and sample.txt."""
    (folder / "figures.json").write_text(json.dumps(results, indent=2) + "\n")
    facts = [
        f"* {results['parameters']:,} parameters, {results['steps']} steps, "
        f"{results['train_characters']:,} characters seen",
        f"* {results['train_seconds']:.0f} s of training, "
        f"{results['characters_per_second']:.0f} characters a second; "
        f"{results['wall_seconds']:.0f} s in all",
        f"* held-out: {results['held_out_characters']:,} characters of files never trained on",
    ]
    (folder / "figures.md").write_text(loss_table(results) + "\n\n" + "\n".join(facts) + "\n")
    (folder / "sample.txt").write_text(sample + "\n")
