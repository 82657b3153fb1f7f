"""torch_layers.py PROGRAM MODEL - every layer has PyTorch's names, shapes and values.

Trains the model of layers_model.c for a moment, loads its checkpoint into a PyTorch module by load_state_dict, which checks
all names and shapes, and compares what each layer makes of fixed data with what the program stored of it. Exit status 77
(skipped) where PyTorch is missing.
"""
import json, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore", message=".*NumPy.*")
try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)
from torch import nn

from torch_gmm import load

WIDE, ITEMS, DATA = 3, 4, 3


class Residual(nn.Module):
    def __init__(self, n_in, width, n_blocks, n_out):
        super().__init__()
        setattr(self, "in", nn.Linear(n_in, width))
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(),
                                                  nn.Linear(width, width)) for _ in range(n_blocks))
        self.out = nn.Linear(width, n_out)

    def forward(self, x):
        h = getattr(self, "in")(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


phi = nn.ModuleDict({
    "linear": nn.Linear(12, 2),
    "mlp": nn.Sequential(nn.Linear(12, 5), nn.Tanh(), nn.Linear(5, 2)),
    "rnn": nn.RNNCell(WIDE, WIDE),
    "gru": nn.GRUCell(WIDE, WIDE),
    "lstm": nn.LSTMCell(WIDE, WIDE),
    "embedding": nn.Embedding(5, 2),
    "both_rnn": nn.RNN(WIDE, 4, bidirectional=True, batch_first=True),
    "both_gru": nn.GRU(WIDE, 4, bidirectional=True, batch_first=True),
    "both_lstm": nn.LSTM(WIDE, 4, bidirectional=True, batch_first=True),
    "attention": nn.MultiheadAttention(WIDE, 3, batch_first=True),
    "narrow": nn.MultiheadAttention(2 * WIDE, 2, kdim=WIDE, vdim=WIDE, batch_first=True),
    "set": nn.Sequential(nn.Linear(WIDE, 6), nn.ReLU(), nn.Linear(6, 2)),
    "norm": nn.LayerNorm(12),
    "residual": Residual(12, 6, 2, 2),
    "conv": nn.Conv2d(2, 3, 2, stride=2, padding=1),
    "transposed": nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1),
})


def cells(x):
    rnn = gru = lstm = memory = torch.zeros(DATA, WIDE)
    for t in range(ITEMS):
        rnn, gru = phi["rnn"](x[:, t], rnn), phi["gru"](x[:, t], gru)
        lstm, memory = phi["lstm"](x[:, t], (lstm, memory))
    return torch.cat([rnn, gru, lstm, memory], 1)


def both(name, x):
    states, last = phi[name](x)
    last = last[0] if name == "both_lstm" else last
    return torch.cat([states.flatten(1), last[0], last[1]], 1)


def attend(name, query, x):
    return phi[name](query[:, None], x, x)[0][:, 0]


def compute(flat):
    x, pictures = flat.reshape(DATA, ITEMS, WIDE), flat.reshape(DATA, 2, 2, 3)
    pooled = [torch.nn.functional.max_pool2d(flat.reshape(DATA, 1, 4, 3), 2), torch.nn.functional.avg_pool2d(pictures, 2)]
    return {
        "linear": phi["linear"](flat),
        "mlp": phi["mlp"](flat),
        "cells": cells(x),
        "embedding": phi["embedding"](torch.tensor([3] * DATA)),
        "both_rnn": both("both_rnn", x),
        "both_gru": both("both_gru", x),
        "both_lstm": both("both_lstm", x),
        "attention": attend("attention", x[:, 0], x),
        "narrow": attend("narrow", flat[:, :2 * WIDE], x),
        "dot": torch.nn.functional.scaled_dot_product_attention(x[:, 1:2], x, x)[:, 0],
        "set": phi["set"](x).mean(1),
        "norm": phi["norm"](flat),
        "residual": phi["residual"](flat),
        "conv": phi["conv"](pictures),
        "transposed": phi["transposed"](pictures),
        "pool": torch.cat([p.flatten(1) for p in pooled], 1),
    }


def limits(weights):
    """Whether what PyTorch draws at the start has the limits of what the program drew, within what chance allows."""
    good = True
    for name, tensor in phi.state_dict().items():
        mine, theirs = weights["phi." + name].abs().max().item(), tensor.abs().max().item()
        if name == "embedding.weight" or max(mine, theirs) < 1e-20:
            continue  # an embedding starts like a linear layer here
        if tensor.numel() >= 16 and not 0.7 * theirs <= mine <= 1.4 * theirs:
            print(f"{name} starts with numbers up to {mine:.3g}, in PyTorch up to {theirs:.3g}")
            good = False
    return good


def train(program, model, folder, iterations, lr):
    subprocess.run([program, "train", model, "-n", str(iterations), f"--lr={lr}", f"--out={folder}"], check=True,
                   stdout=subprocess.DEVNULL)
    return load(f"{folder}/checkpoint.safetensors")


def main(program, model):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        weights = train(program, model, f"{folder}/run", 200, "1e-2")
        lines = subprocess.run([program, "export", f"{folder}/run", "--snapshots", "--format=json"], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        start = train(program, model, f"{folder}/start", 1, "1e-30")
    good = limits(start)
    stored = {}
    for line in lines:
        row = json.loads(line)
        if row["iteration"] == 200:
            stored.setdefault(row["snapshot"], []).append(row["value"])
    phi.load_state_dict({name: weights["phi." + name] for name in phi.state_dict()})  # all names, all shapes
    others = {name for name in weights if name.startswith("phi.")} - {"phi." + name for name in phi.state_dict()}
    if others:
        print("PyTorch has no parameters", others)
        good = False
    flat = torch.tensor([((i * 37 + 11) % 41) / 20 - 1 for i in range(DATA * 12)]).reshape(DATA, 12)
    with torch.no_grad():
        computed = compute(flat)
    for name, value in computed.items():
        value = value.flatten()
        same = len(stored[name]) == len(value)
        worst = (value - torch.tensor(stored[name])).abs().max().item() if same else float("nan")
        good = good and worst <= 1e-5
        print(f"{name}: {len(value)} numbers, the largest difference is {worst:.2g}")
    return good


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1], sys.argv[2]) else 1)
