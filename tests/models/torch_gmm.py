"""torch_gmm.py PROGRAM - a checkpoint opens in Python: its weights in an equivalent PyTorch module give the same q.

Trains the Gaussian mixture for a moment, loads theta and the guide into a module by load_state_dict, and compares p(z)
and q(z|x) at x = 0, 95, 190 with what the program stored of them. Exit status 77 (skipped) where PyTorch is missing.
"""
import json, subprocess, sys, tempfile

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

TYPES = {"F32": torch.float32, "F64": torch.float64, "U64": torch.int64, "I64": torch.int64}


def load(path):
    """The tensors of a safetensors file, by name."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = bytearray(f.read())
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=TYPES[about["dtype"]]).reshape(about["shape"])
    return tensors


class Mixture(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.theta = torch.nn.Parameter(torch.zeros(20))
        layers, n = [], 1
        for _ in range(hidden):
            layers += [torch.nn.Linear(n, 16), torch.nn.Tanh()]
            n = 16
        self.phi = torch.nn.ModuleDict({"mlp": torch.nn.Sequential(*layers, torch.nn.Linear(n, 20))})

    def p(self):
        return torch.softmax(self.theta, 0)

    def q(self, x):
        return torch.softmax(self.phi["mlp"](torch.tensor([float(x)])), 0)


def check(program, method, hidden):
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        subprocess.run([program, "train", "gmm", f"--method={method}", "-k", "5", "-n", "3000", "--eval-every=1000",
                        f"--set=gmm_hidden={hidden}", f"--out={run}"], check=True, stdout=subprocess.DEVNULL)
        lines = subprocess.run([program, "export", run, "--snapshots", "--format=json"], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        weights = load(f"{run}/checkpoint.safetensors")
    stored = {}
    for line in lines:
        row = json.loads(line)
        if row["iteration"] == 3000:
            stored.setdefault(row["snapshot"], []).append(row["value"])

    model = Mixture(hidden)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})  # all names, all shapes
    with torch.no_grad():
        computed = {"p": model.p(), "q_0": model.q(0), "q_95": model.q(95), "q_190": model.q(190)}
    worst = max((computed[name] - torch.tensor(stored[name])).abs().max().item() for name in computed)
    print(f"{method}, {hidden} hidden: the largest difference is {worst:.2g}")
    return worst <= 1e-5 and weights["iteration"].item() == 3000


if __name__ == "__main__":
    good = [check(sys.argv[1], method, hidden) for method, hidden in (("ww", 1), ("relax", 2))]
    sys.exit(0 if all(good) else 1)
