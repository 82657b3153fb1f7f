#!/usr/bin/python3
"""Training of the sigmoid belief network (200-200-200-784) in PyTorch, written for speed on the CPU.

Every gradient is an outer product of a residual and an input, so there is no backward pass: residuals are kept, and one
product per matrix follows when the coefficients are known. Layout is [particle, datum, unit]; s = 2h - 1 are the inputs.

What is linear in a sample and constant over particles is done once per datum: log q(h1|x), and the part x.logits of
log p(x|h1). So the wide layer costs a product, a sigmoid and half a logarithm per pixel. Particles are taken in blocks
that stay in the cache.

    sbn.py --method ww --particles 50 --iterations 100 [--prune] --json
    sbn.py --check
"""
import math

import common
import numpy as np
import torch
from torch.nn.functional import logsigmoid

H, X = 200, 784
ROWS, ROWS_BACK = 480, 960  # of a block, forward and for gradients
RATE = 3e-4


def shapes(H, X):
    """V1 x->h1, V2 h1->h2, V3 h2->h3 are q's; W1 h1->x, W2 h2->h1, W3 h3->h2 and a are p's."""
    return {"W1": (X, H), "b1": (X,), "W2": (H, H), "b2": (H,), "W3": (H, H), "b3": (H,), "a": (H,),
            "V1": (H, X), "c1": (H,), "V2": (H, H), "c2": (H,), "V3": (H, H), "c3": (H,)}


def initialise(p, mean):
    for name, tensor in p.items():
        if name[0] in "WV":
            bound = 1 / math.sqrt(tensor.shape[1])
            tensor.uniform_(-bound, bound)
            p["bc"["WV".index(name[0])] + name[1]].uniform_(-bound, bound)
    p["a"].zero_()
    p["b1"].copy_(torch.logit(mean, 1e-4))


def images(n, seed):
    """Binary images [n, 784]: handwritten digits if `rws data mnist` was run, else blobs about as dark."""
    rng = np.random.default_rng(seed)
    digits = common.cached("mnist/train-images-idx3-ubyte", 16)
    if digits is not None:
        grey = digits.reshape(-1, X)[rng.integers(0, 50000, n)] / 255
    else:
        side = np.linspace(-1, 1, 28)
        centre, width = rng.normal(0, 0.35, (n, 4, 2, 1)), rng.uniform(0.1, 0.25, (n, 4, 2, 1))
        bump = np.exp(-0.5 * ((side - centre) / width) ** 2)
        grey = np.einsum("nby,nbx->nyx", bump[:, :, 0], bump[:, :, 1]).reshape(n, X) * 1.2 - 0.2
    return torch.from_numpy((rng.random((n, X)) < grey).astype(np.float32))


class Trainer:
    def __init__(self, team, args, x, mean, uniform):
        self.team, self.method, self.K, self.B, self.prune = team, args.method, args.particles, x.shape[1], args.prune
        self.batch, self.x, self.mean, self.uniform = args.batch, x, mean, uniform
        self.t, self.coefficients = 0, common.coefficients
        self.p, self.g = common.views(team.P, shapes(H, X)), common.views(team.G, shapes(H, X))
        if team.rank == 0:
            torch.manual_seed(args.seed)
            initialise(self.p, mean)
        self.optimiser = common.Adam(team, 0, len(team.P), RATE)
        # samples, residuals of p(h1|h2), p(h2|h3), q(h2|h1), q(h3|h2), and 1 - p(x=1|h1), of all particles
        K, B = self.K, self.B
        self.s1, self.s2, self.s3, self.d1, self.d2, self.e2, self.e3 = torch.empty(7, K, B, H)
        self.r = torch.empty(K, B, X)
        self.l = torch.empty(K, B)

    def choices(self, logits, u, s, e):
        """h = u < sigmoid(logits): writes s and the residual e = h - sigmoid, returns the probabilities of the choices."""
        q = logits.sigmoid_()
        h = torch.lt(u, q, out=s)
        torch.sub(h, q, out=e)
        h.mul_(2).sub_(1)
        return torch.abs(e, out=q).neg_().add_(1)

    def scores(self, logits, s, d):
        """The probabilities of the signs s; writes the residual d = s (1 - probability) = h - sigmoid."""
        t = logits.mul_(s).sigmoid_()
        torch.addcmul(s, s, t, value=-1, out=d)
        return t

    def sample(self, x, psi):
        """Fills samples, residuals and log-weights; returns sigmoids of q(h1|x)."""
        p, B = self.p, self.B
        logits1 = torch.addmm(p["c1"], psi, p["V1"].t())
        q1 = logits1.sigmoid()
        # log p(x|h1) - log q(h1|x) without the sum of log r: v.s1 + constant
        v = torch.addmm(logits1, x, p["W1"], beta=-0.5)
        constant = torch.mv(x, p["b1"]) - logits1.sum(1) / 2 - logsigmoid(-logits1).sum(1)
        constant += logsigmoid(-p["a"]).sum() + p["a"].sum() / 2
        step = max(1, ROWS // B)
        for k in range(0, self.K, step):
            s1, s2, s3, d1, d2, e2, e3, r, l = (t[k:k + step].view(-1, t.shape[2]) for t in (
                self.s1, self.s2, self.s3, self.d1, self.d2, self.e2, self.e3, self.r, self.l.unsqueeze(2)))
            n = len(s1) // B
            u1, u2, u3 = self.uniform(3, n * B, H)
            torch.lt(u1.view(n, B, H), q1, out=s1.view(n, B, H)).mul_(2).sub_(1)
            q2 = self.choices(torch.addmm(p["c2"], s1, p["V2"].t()), u2, s2, e2)
            q3 = self.choices(torch.addmm(p["c3"], s2, p["V3"].t()), u3, s3, e3)
            p1 = self.scores(torch.addmm(p["b2"], s2, p["W2"].t()), s1, d1)
            p2 = self.scores(torch.addmm(p["b3"], s3, p["W3"].t()), s2, d2)
            torch.addmm(p["b1"], s1, p["W1"].t(), beta=-1, alpha=-1, out=r).sigmoid_()
            # one logarithm for four probabilities, or for two pixels
            p1.mul_(p2).div_(q2.mul_(q3)).log_()
            p1.addcmul_(s3, p["a"], value=0.5).view(n, B, H).addcmul_(s1.view(n, B, H), v)
            torch.sum(p1, 1, keepdim=True, out=l)
            l += torch.mul(r[:, :X // 2], r[:, X // 2:]).log_().sum(1, keepdim=True)
        self.l += constant
        return q1

    def blocks(self, c, *tensors):
        """Of all particles or of those that count, in blocks: 0 in the first block and 1 then, the coefficients [n, 1],
        a function that sums such rows over particles to [B, ...], and the rows [n, ...] of the tensors."""
        tensors = [t.view(-1, t.shape[2]) for t in tensors]
        if self.prune:
            k, b = common.kept(c)
            index, c = k * self.B + b, c[k, b].unsqueeze(1)
        else:
            c = c.reshape(-1, 1)
        step = max(1, ROWS_BACK // self.B) * self.B
        for low in range(0, len(c), step):
            part = slice(low, low + step)
            if self.prune:
                over_particles = lambda rows: rows.new_zeros(self.B, rows.shape[1]).index_add_(0, b[part], rows)
                yield min(low, 1), c[part], over_particles, [t.index_select(0, index[part]) for t in tensors]
            else:
                over_particles = lambda rows: rows.view(-1, self.B, rows.shape[1]).sum(0)
                yield min(low, 1), c[part], over_particles, [t[part] for t in tensors]

    def outer(self, weight, bias, residual, c, weighted, beta):
        torch.addmm(self.g[weight], residual.t(), weighted, beta=beta, out=self.g[weight])
        torch.addmv(self.g[bias], residual.t(), c[:, 0], beta=beta, out=self.g[bias])

    def p_gradients(self, x, c):
        """c [K, B]: the coefficients of grad log p."""
        g, total, mean1, mean3 = self.g, 0, 0, 0
        tensors = self.s1, self.s2, self.s3, self.d1, self.d2, self.r
        for beta, c, over_particles, (s1, s2, s3, d1, d2, r) in self.blocks(c, *tensors):
            w1, w3 = c * s1, c * s3
            self.outer("W2", "b2", d1, c, c * s2, beta)
            self.outer("W3", "b3", d2, c, w3, beta)
            self.outer("W1", "b1", r, c, w1, beta)  # x - sigmoid = (x - 1) + r
            total, mean1, mean3 = total + over_particles(c), mean1 + over_particles(w1), mean3 + w3.sum(0)
        g["W1"].addmm_((x - 1).t(), mean1)
        g["b1"].addmv_((x - 1).t(), total[:, 0])
        torch.add(mean3, total.sum(), out=g["a"]).div_(2).sub_(self.p["a"].sigmoid() * total.sum())

    def q_gradients(self, psi, q1, c):
        """c [K, B]: the coefficients of grad log q; q1: the sigmoids of q(h1|x)."""
        g, total, mean1 = self.g, 0, 0
        for beta, c, over_particles, (s1, s2, e2, e3) in self.blocks(c, self.s1, self.s2, self.e2, self.e3):
            w1 = c * s1
            self.outer("V2", "c2", e2, c, w1, beta)
            self.outer("V3", "c3", e3, c, c * s2, beta)
            total, mean1 = total + over_particles(c), mean1 + over_particles(w1)
        e1 = (mean1 + total).div_(2).addcmul_(q1, total, value=-1)
        torch.mm(e1.t(), psi, out=g["V1"])
        torch.sum(e1, 0, out=g["c1"])

    def iterate(self):
        x = self.x[self.t % len(self.x)]
        self.t += 1
        psi = x - self.mean
        q1 = self.sample(x, psi)
        L, cp, cq = self.coefficients(self.method, self.l)
        self.p_gradients(x, (cp / self.batch).float())
        self.q_gradients(psi, q1, (cq / self.batch).float())
        self.optimiser.step()
        return float(L.mean())


# ---- check


def plain(p, cp, cq, x, mean, h1, h2, h3):
    """Bound and gradient from the definitions, by autograd in double, with the coefficients cp and cq [K, B]."""
    p = {name: tensor.detach().double().requires_grad_() for name, tensor in p.items()}
    x, mean, h1, h2, h3 = (t.double() for t in (x, mean, h1, h2, h3))

    def log_bernoulli(h, logits):
        return (h * logsigmoid(logits) + (1 - h) * logsigmoid(-logits)).sum(-1)

    def linear(h, weight, bias):
        return h @ p[weight].t() + p[bias]

    sign = lambda h: 2 * h - 1
    log_p = (log_bernoulli(h3, p["a"]) + log_bernoulli(h2, linear(sign(h3), "W3", "b3"))
             + log_bernoulli(h1, linear(sign(h2), "W2", "b2")) + log_bernoulli(x, linear(sign(h1), "W1", "b1")))
    log_q = (log_bernoulli(h1, linear(x - mean, "V1", "c1")) + log_bernoulli(h2, linear(sign(h1), "V2", "c2"))
             + log_bernoulli(h3, linear(sign(h2), "V3", "c3")))
    L = torch.logsumexp(log_p - log_q, 0) - math.log(len(h1))
    target = (cp * log_p + cq * log_q).sum(0).mean()
    grads = torch.autograd.grad(target, list(p.values()))
    return L, dict(zip(p, grads))


def check(args):
    common.check_team()
    n = common.size(shapes(H, X))
    for args.method, args.particles, args.prune in (("ww", 5, False), ("ww", 60, False), ("ww", 60, True), ("vimco", 2, False),
                                                    ("vimco", 60, False), ("vimco", 60, True)):
        x = images(args.batch, 7)
        mean = images(1000, 8).mean(0)
        common.check_coefficients(args.method)
        trainer = Trainer(common.Team(1, n), args, x.unsqueeze(0), mean, common.Uniform(3))
        trainer.coefficients = common.random_coefficients
        with torch.no_grad():
            trainer.p["a"].normal_()
            p = {name: tensor.clone() for name, tensor in trainer.p.items()}
            trainer.iterate()
        h = [(s + 1) / 2 for s in (trainer.s1, trainer.s2, trainer.s3)]
        got, *c = common.random_coefficients(args.method, trainer.l)
        L, g = plain(p, *c, x, mean, *h)
        errors = {name: float((trainer.g[name] - g[name]).norm() / g[name].norm()) for name in g}
        worst = max(errors, key=errors.get)
        print("%-6s K=%-3d %-8s bound %.1e, worst gradient %s %.1e" % (args.method, args.particles, "pruned" if args.prune
              else "", float((got - L).abs().max()), worst, errors[worst]))
        assert float((got - L).abs().max()) < 1e-3 and errors[worst] < 1e-4, errors
        # the samples come from q: share of ones against probability, in units of its deviation
        for name, sample, given in (("V2", h[1], h[0]), ("V3", h[2], h[1])):
            q = torch.sigmoid((2 * given - 1) @ p[name].t() + p["c" + name[1]]).double()
            z = float((sample.double() - q).sum() / (q * (1 - q)).sum().sqrt())
            assert abs(z) < 5, (name, z)


def make(args):
    def trainer(team):
        n = args.batch // team.size + (team.rank < args.batch % team.size)
        x = images(10 * n, args.seed * 100 + team.rank).view(10, n, X)
        return Trainer(team, args, x, images(2000, 8).mean(0), common.Uniform((args.seed, team.rank)))
    return trainer


if __name__ == "__main__":
    args = common.options(__doc__, ["ww", "vimco"], batch=24, particles=50, iterations=110, prune=True).parse_args()
    with torch.no_grad() if not args.check else torch.enable_grad():
        check(args) if args.check else common.measure(args, common.size(shapes(H, X)), make(args), even=True)
