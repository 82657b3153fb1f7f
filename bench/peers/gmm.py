#!/usr/bin/python3
"""Training of the Gaussian mixture in PyTorch, written for speed on one CPU thread.

Everything is vectorised over data and particles, and every gradient is written by hand: at these sizes a dispatch costs
as much as its arithmetic, and autograd doubles their number. Layout is [category, datum] and [particle, datum], where
softmax and sums run along the contiguous side. Biases are weights of a unit that is always 1: the last hidden unit has
the pre-activation 20, tanh(20) = 1 in float, so its own gradient is exactly 0 and it stays. Gradients are sums, not
means; Adam sees that only through eps, which is scaled instead. Noise and data come in chunks, from numpy's SFC64.
The loop over a chunk is TorchScript.

    gmm.py --method ww --particles 20 --iterations 20000 --json
    gmm.py --check
"""
import argparse
import json
import math
import os
import resource
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
METHODS = ["ww", "ws", "dww", "wws", "vimco", "reinforce", "rloo", "nvil", "relax", "rebar", "concrete"]
parser.add_argument("--method", choices=METHODS, default="ww")
parser.add_argument("--particles", type=int, default=20)
parser.add_argument("--iterations", type=int, default=20000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--json", action="store_true", help="one JSON object instead of a line of text")
parser.add_argument("--check", action="store_true", help="check every gradient against autograd and enumeration")
args = parser.parse_args()
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)

import numpy as np
import torch
from torch import Tensor
from torch.jit import Final

torch.set_num_threads(args.threads)
torch.set_flush_denormal(True)

B, C, H, HB = 100, 20, 16, 100
N_PHI = 372
LOG_NORMAL = -math.log(5 * math.sqrt(2 * math.pi))
DELTA = 0.2
MEAN_X = 10 * sum(c * (c + 5) for c in range(C)) / 290


def linear(n_out, n_in, constant_unit):
    """[n_out (+1), n_in + 1], the last column is the bias; PyTorch's initialisation."""
    w = (torch.rand(n_out, n_in + 1) * 2 - 1) / math.sqrt(n_in)
    if constant_unit:
        w = torch.cat([w, torch.zeros(1, n_in + 1)])
        w[-1, -1] = 20
    return w


def flat(tensors):
    """One vector, and the tensors as views into it."""
    vector = torch.cat([t.reshape(-1) for t in tensors])
    views, at = [], 0
    for t in tensors:
        views.append(vector[at:at + t.numel()].view(t.shape))
        at += t.numel()
    return vector, views


class Trainer(torch.nn.Module):
    method: Final[str]
    K: Final[int]
    total: Final[int]
    B: Final[int]
    C: Final[int]
    n_phi: Final[int]
    delta: Final[float]
    log_normal: Final[float]
    mean_x: Final[float]

    def __init__(self, method, K, total):
        super().__init__()
        self.method, self.K, self.total, self.t = method, K, total, 0
        self.B, self.C, self.n_phi, self.delta = B, C, N_PHI, DELTA
        self.log_normal, self.mean_x = LOG_NORMAL, MEAN_X
        # theta and phi, their gradient and Adam state
        parts = [torch.arange(C - 1, -1, -1).to(torch.get_default_dtype()), linear(H, 1, True), linear(C, H, False)]
        self.P, (self.theta, self.W1, self.W2) = flat(parts)
        self.G, (self.g_theta, self.g_W1, self.g_W2) = flat([torch.zeros_like(p) for p in parts])
        self.M, self.V = torch.zeros_like(self.P), torch.zeros_like(self.P)
        self.P_phi, self.G_phi, self.M_phi, self.V_phi = self.P[C:], self.G[C:], self.M[C:], self.V[C:]
        self.M_theta, self.V_theta = self.M[:C], self.V[:C]
        self.theta_column, self.W2_t = self.theta.view(C, 1), self.W2.t()
        # rho (relax, rebar) or psi (nvil)
        extra = {"relax": [linear(H, 1 + C, True), linear(H, H, True), linear(1, H, False)],
                 "rebar": [torch.tensor([1.0, 0.0])],
                 "nvil": [linear(HB, 1, True), linear(1, HB, False)]}.get(method, [torch.zeros(1)])
        self.R, views = flat(extra)
        self.g_R, g_views = flat([torch.zeros_like(p) for p in extra])
        self.M_R, self.V_R = torch.zeros_like(self.R), torch.zeros_like(self.R)
        self.A1, self.A2, self.A3 = (views + [torch.zeros(1, 1)] * 2)[:3]
        self.g_A1, self.g_A2, self.g_A3 = (g_views + [torch.zeros(1, 1)] * 2)[:3]
        self.moments = torch.tensor([0.0, 0.0])
        # scratch and constants
        self.less = torch.empty(C - 1, K, B)
        self.below = torch.zeros(C + 1, B)
        self.below[C] = K
        self.below_inner, self.below_lo, self.below_hi = self.below[1:C], self.below[:C], self.below[1:]
        self.ones, self.one, self.minus_one = torch.ones(B), torch.tensor(1.0), torch.tensor(-1.0)
        self.x_sleep = torch.ones(2, K * B)
        self.x_sleep_t, self.x_sleep_0 = self.x_sleep.t(), self.x_sleep[0]
        self.reached = torch.empty(C - 1, K * B)
        self.one_hot = torch.empty(C, K * B)
        self.Y = torch.ones(C + 2, 2 * K * B) if method == "relax" else torch.ones(1, 1)
        self.index = torch.arange(C).to(torch.get_default_dtype()).view(C, 1)
        self.mu = self.index * 10
        self.off_diagonal = (1 - torch.eye(C)).double()

    # ---- shared pieces ----
    # Tensor op tensor with a factor alpha, where it serves: tensor op number makes a tensor of the number each time.

    def adam(self, P: Tensor, G: Tensor, M: Tensor, V: Tensor, t: int, n: float, lr: float):
        """P += lr m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) for the gradient G / n; M and V are in units of G."""
        c2 = math.sqrt(1 - 0.999**t)
        M.lerp_(G, 0.1)
        V.lerp_(G * G, 0.001)
        P.addcdiv_(M, V.sqrt().add_(self.one, alpha=1e-8 * n * c2), value=lr * c2 / (1 - 0.9**t))

    def step_theta(self, t: int):
        self.adam(self.theta, self.g_theta, self.M_theta, self.V_theta, t, float(self.B), 1e-3)

    def step_phi(self, t: int, n: float):
        self.adam(self.P_phi, self.G_phi, self.M_phi, self.V_phi, t, n, 1e-3)

    def step_both(self, t: int):
        self.adam(self.P, self.G, self.M, self.V, t, float(self.B), 1e-3)

    def tanh(self, W: Tensor, x: Tensor):
        """tanh(W x) = 2 sigmoid(2 W x) - 1: a third of the time of torch.tanh, absolute error 1e-7."""
        return torch.add(self.minus_one, torch.mm(W + W, x).sigmoid_(), alpha=2.0)

    def counts(self, q: Tensor, u: Tensor):
        """[C, B]: how many of the K draws fall into each category, by inverse cdf, u [K, B]."""
        torch.lt(u, q[:-1].cumsum(0).unsqueeze(1), out=self.less)
        torch.sum(self.less, 1, out=self.below_inner)
        return self.below_hi - self.below_lo

    def share(self, l: Tensor, n: Tensor):
        """[C, B]: total wbar of the particles in each category."""
        return torch.softmax(l.add_(n.log()), 0)

    def theta_gradient(self, wbar: Tensor):
        torch.mv(wbar, self.ones, out=self.g_theta)
        self.g_theta.sub_(torch.softmax(self.theta, 0), alpha=float(self.B))

    def backward(self, x: Tensor, h: Tensor, d: Tensor):
        torch.mm(d, h.t(), out=self.g_W2)
        torch.mm(torch.ops.aten.tanh_backward(torch.mm(self.W2_t, d), h), x.t(), out=self.g_W1)

    def leave_one_out(self, l: Tensor, n: Tensor):
        """Total wbar and total L - Ups_{-k} - wbar_k of each category, in double and relative to the maximum. Sums over
        the other particles leave one out by a zero in a product, so nothing cancels; a gain is cut at about 690."""
        n = n.double()
        l = l.double()
        top = (l + n.log()).amax(0)
        l = l - top
        e = l.exp().clamp_max_(1.0)  # no particle is above; the clamp is for categories without one
        e_n = e * n
        total = e_n.sum(0)
        rest = torch.mm(self.off_diagonal, e_n).addcmul_((n - 1).clamp_min_(0.0), e)
        if self.method == "vimco":
            rest.add_(((l * n).sum(0) - l).mul_(1 / (self.K - 1)).clamp_max_(0.0).exp_())
        else:
            rest.mul_(self.K / (self.K - 1))
        wbar = e_n / total
        a = (total / rest.clamp_min_(1e-300)).log_().mul_(n).sub_(wbar)
        return wbar.to(self.G.dtype), a.to(self.G.dtype)

    def bound(self, lik: Tensor, lq: Tensor, n: Tensor):
        """Total wbar of each category, and L."""
        l = (lik - lq).add_(torch.log_softmax(self.theta_column, 0)).add_(n.log())
        wbar = torch.softmax(l, 0)
        return wbar, l.amax(0) - wbar.amax(0).log_() - math.log(self.K)

    # ---- methods; x [2, B] is (x, 1), lik [C, B] = log N(x; 10 c, 25), u and v uniform noise ----

    def wake(self, x: Tensor, lik: Tensor, u: Tensor, t: int):
        h = self.tanh(self.W1, x)
        logit = torch.mm(self.W2, h)
        if self.method == "reinforce" or self.method == "nvil":
            lq = torch.log_softmax(logit, 0)
            q = lq.exp()
            n = self.counts(q, u)
            wbar, L = self.bound(lik, lq, n)
            if self.method == "nvil":
                L = self.nvil_signal(x, L, t)
            d = (n * L).sub_(wbar).addcmul_(q, L * self.K - 1, value=-1.0)
        else:  # the normalisers of p and q cancel in wbar and in L - Ups
            q = torch.softmax(logit, 0)
            n = self.counts(q, u)
            l = (lik - logit).add_(self.theta_column)
            if self.method == "ww":
                wbar = self.share(l, n)
                d = wbar - q
            else:
                wbar, a = self.leave_one_out(l, n)
                d = torch.addcmul(a, q, a.sum(0), value=-1.0)
        self.theta_gradient(wbar)
        self.backward(x, h, d)
        self.step_both(t)

    def nvil_signal(self, x: Tensor, L: Tensor, t: int):
        """(L - b(x) - c) / max(1, sd); one step of the baseline on (L - b)^2."""
        y = x.clone()
        y[0].sub_(self.mean_x)
        h = self.tanh(self.A1, y)
        r = L - torch.mm(self.A2, h)[0]
        var, mean = torch.var_mean(r, 0, unbiased=False)
        self.moments.lerp_(torch.stack([mean, var]), 0.2)
        torch.mm(r.view(1, -1), h.t(), out=self.g_A2)
        torch.mm(torch.ops.aten.tanh_backward(self.A2.t() * r, h), y.t(), out=self.g_A1)
        self.adam(self.R, self.g_R, self.M_R, self.V_R, t, self.B / 2, 1e-2)
        return (r - self.moments[0]) / self.moments[1].sqrt().clamp_min_(1.0)

    def dww(self, x: Tensor, lik: Tensor, u: Tensor, v: Tensor, t: int):
        h = self.tanh(self.W1, x)
        logit = torch.mm(self.W2, h)
        q = torch.softmax(logit, 0)
        self.theta_gradient(self.share((lik - logit).add_(self.theta_column), self.counts(q, u)))
        self.step_theta(t)
        qd = q * (1 - self.delta) + self.delta / self.C
        n = self.counts(qd, v)
        self.backward(x, h, self.share((lik - qd.log_()).add_(self.theta_column), n).sub_(q))
        self.step_phi(t, float(self.B))

    def ws(self, x: Tensor, lik: Tensor, u: Tensor, v: Tensor, noise: Tensor, t: int):
        h = self.tanh(self.W1, x)
        logit = torch.mm(self.W2, h)
        q = torch.softmax(logit, 0)
        wbar = self.share((lik - logit).add_(self.theta_column), self.counts(q, u))
        self.theta_gradient(wbar)
        self.step_theta(t)
        # K B draws of the joint; noise ~ N(0, 25); d = q - onehot
        torch.ge(v, torch.softmax(self.theta_column, 0)[:-1].cumsum(0), out=self.reached)
        z = self.reached.sum(0)
        torch.add(noise, z, alpha=10, out=self.x_sleep_0)
        h_s = self.tanh(self.W1, self.x_sleep)
        d = torch.mm(self.W2, h_s)
        d = d.sub_(d.amax(0)).exp_()
        d.div_(d.sum(0)).sub_(torch.eq(self.index, z, out=self.one_hot))
        n = float(self.K * self.B)
        if self.method == "wws":  # mean of the two means = (K wake sum + sleep sum) / (2 K B)
            self.backward(x, h, wbar - q)
            back = torch.ops.aten.tanh_backward(torch.mm(self.W2_t, d), h_s)
            torch.addmm(self.g_W2, d, h_s.t(), beta=float(self.K), alpha=-1.0, out=self.g_W2)
            torch.addmm(self.g_W1, back, self.x_sleep_t, beta=float(self.K), alpha=-1.0, out=self.g_W1)
            self.step_phi(t, 2 * n)
        else:
            self.backward(self.x_sleep, h_s, d)
            self.G_phi.neg_()
            self.step_phi(t, n)

    def argmax(self, g: Tensor, top: Tensor):
        """[1, K B] where g equals its maximum, the last one at a tie (they happen in float), and one_hot of it; faster
        than torch.argmax."""
        z = torch.eq(g, top, out=self.one_hot).mul_(self.index).amax(0, keepdim=True)
        torch.eq(self.index, z, out=self.one_hot)
        return z

    def relaxation(self, lq: Tensor, u: Tensor, v: Tensor):
        """Gumbels g with their argmax z, and gt given z, both [C, K B]; slope = d gt / d lq, 0 at z; n the counts of z.
        A = log(-log v) - lq, gt = -logaddexp(A, B_z) = log sigmoid(A - B_z) - A, and -B_z at z."""
        shape = (self.C, self.K, self.B)
        g = (lq.unsqueeze(1) - u.log_().neg_().log_().view(shape)).view(self.C, -1)
        z = self.argmax(g, g.amax(0)).long()
        v = v.log_().neg_().log_()
        B_z = v.gather(0, z)
        A = (v.view(shape) - lq.unsqueeze(1)).view(self.C, -1)
        slope = (A - B_z).sigmoid_()
        gt = slope.log().sub_(A)
        gt.scatter_(0, z, B_z.neg_())
        slope.scatter_(0, z, 0.0)
        return g, gt, slope, self.one_hot.view(shape).sum(1)

    def phi_gradient(self, x: Tensor, h: Tensor, q: Tensor, n: Tensor, signal: Tensor, wbar: Tensor, path: Tensor):
        """sum_k (signal - wbar_k) grad lq[z_k] + sum_k path_k grad lq, path [C, K B]."""
        a = path.view(self.C, self.K, self.B).sum(1).addcmul_(n, signal).sub_(wbar)
        self.backward(x, h, a - q * a.sum(0))

    def direction(self, x: Tensor, h: Tensor, q: Tensor, n: Tensor, slope: Tensor):
        """dl = derivative of lq along the gradient of phi; returns -sum_k dl[z_k], and the tangents dl of g and
        -slope dl of gt side by side. Overwrites slope."""
        dl = torch.addmm(torch.mm(self.g_W2, h), self.W2,
                         torch.ops.aten.tanh_backward(torch.mm(self.g_W1, x), h))
        dl = dl - (q * dl).sum(0)
        wide = dl.unsqueeze(1).expand(self.C, self.K, self.B).reshape(self.C, -1)
        return (n * dl).sum(0).neg_(), torch.cat([wide, slope.mul_(wide).neg_()], 1)

    def relax(self, x: Tensor, lik: Tensor, u: Tensor, v: Tensor, t: int):
        N = self.K * self.B
        h = self.tanh(self.W1, x)
        lq = torch.log_softmax(torch.mm(self.W2, h), 0)
        q = lq.exp()
        g, gt, slope, n = self.relaxation(lq, u, v)
        wbar, L = self.bound(lik, lq, n)
        self.theta_gradient(wbar)

        # c and its gradient, g in the first half of the columns and gt in the second
        Y = self.Y
        Y[0].view(2 * self.K, self.B).copy_(x[0].expand(2 * self.K, self.B))
        torch.cat([g, gt], 1, out=Y[1:self.C + 1])
        h1 = self.tanh(self.A1, Y)
        h2 = self.tanh(self.A2, h1)
        e2 = torch.ops.aten.tanh_backward(self.A3.t().expand_as(h2), h2)
        b1 = torch.mm(self.A2.t(), e2)
        e1 = torch.ops.aten.tanh_backward(b1, h1)
        A1_g = self.A1[:, 1:self.C + 1]
        dc = torch.mm(A1_g.t(), e1).mul_(1.0 / self.K)
        c_gt = torch.mm(self.A3, h2[:, N:]).view(self.K, self.B).mean(0)
        path = torch.addcmul(dc[:, :N], dc[:, N:], slope, value=-1.0)
        self.phi_gradient(x, h, q, n, L - c_gt, wbar, path)

        # rho: gradient of sum_x [-s c(gt) + Dc(g)[dl] - Dc(gt)[slope dl]], s = sum_k dl[z_k], all but rho constant; its
        # factor 2 / (D_phi B^2 K) goes to eps
        minus_s, Yd = self.direction(x, h, q, n, slope)
        alpha = minus_s.expand(self.K, self.B).reshape(1, -1)
        a1d = torch.mm(A1_g, Yd)
        h1d = torch.ops.aten.tanh_backward(a1d, h1)
        a2d = torch.mm(self.A2, h1d)
        h2d = torch.ops.aten.tanh_backward(a2d, h2)
        torch.sum(h2d, 1, out=self.g_A3[0])
        self.g_A3.addmm_(alpha, h2[:, N:].t())
        a2_bar = a2d.mul_(h2).mul_(-2.0)
        a2_bar[:, N:].add_(alpha)
        a2_bar.mul_(e2)
        torch.mm(a2_bar, h1.t(), out=self.g_A2)
        self.g_A2.addmm_(e2, h1d.t())
        h1_bar = torch.mm(self.A2.t(), a2_bar).addcmul_(b1.mul_(h1), a1d, value=-2.0)
        torch.mm(torch.ops.aten.tanh_backward(h1_bar, h1), Y.t(), out=self.g_A1)
        self.g_A1[:, 1:self.C + 1].addmm_(e1, Yd.t())
        self.step_both(t)
        self.adam(self.R, self.g_R, self.M_R, self.V_R, t, self.n_phi * self.B * self.B * self.K / 2, -1e-3)

    def rebar(self, x: Tensor, lik: Tensor, u: Tensor, v: Tensor, t: int):
        K, N = self.K, self.K * self.B
        h = self.tanh(self.W1, x)
        lq = torch.log_softmax(torch.mm(self.W2, h), 0)
        q = lq.exp()
        g, gt, slope, n = self.relaxation(lq, u, v)
        wbar, L = self.bound(lik, lq, n)
        self.theta_gradient(wbar)

        # c = rho1 (LSE_k r_k - log K), r = log p.s - (x - mu.s)^2/50 + const - log q.s, s = softmax(y), y = g / e^rho2;
        # p and q are constants in it. dr/dy = s (p / p.s - q / q.s + (mu - mu.s)(x - mu.s)/25)
        rho1, T = float(self.R[0]), math.exp(float(self.R[1]))
        wide_shape, shape = (self.C, 2 * K, self.B), (2, K, self.B)
        q3 = q.unsqueeze(1)
        y = torch.cat([g, gt], 1).mul_(1 / T)
        s = torch.softmax(y, 0)
        rows = torch.cat([torch.softmax(self.theta_column, 0), self.mu, torch.ones_like(self.mu)], 1).t()
        p_s, m = torch.mm(rows[:2], s).unbind(0)
        q_s = (s.view(wide_shape) * q3).sum(0).view(-1)
        X = (x[0] - m.view(2 * K, self.B)).view(-1)
        r = (p_s / q_s).log_().addcmul_(X, X, value=-0.02).add_(self.log_normal).view(shape)
        omega = torch.softmax(r, 1)
        f = r.amax(1) - omega.amax(1).log_() - math.log(K)
        X.mul_(0.04)
        i_p, i_q = 1 / p_s, 1 / q_s
        dr = torch.mm(rows[:2].t(), torch.stack([i_p, X])).sub_(m * X)
        dr.view(wide_shape).addcmul_(q3, i_q.view(2 * K, self.B), value=-1.0)
        dr.mul_(s)
        dc = dr * (omega * (rho1 / T)).view(1, -1)
        path = torch.addcmul(dc[:, :N], dc[:, N:], slope, value=-1.0)
        self.phi_gradient(x, h, q, n, L - rho1 * f[1], wbar, path)

        # rho: as in relax. With a = Yd/T and b = -y = dy/drho2:
        # d/drho1 = alpha f + f'[a],  d/drho2 = rho1 (alpha f'[b] + f''[a, b] - f'[a])
        alpha, Yd = self.direction(x, h, q, n, slope)
        a = Yd.mul_(1 / T)
        r_a = (dr * a).sum(0).view(shape)
        r_b = dr.mul_(y).sum(0).neg_().view(shape)
        a.sub_((s * a).sum(0))
        sb = y.sub_((s * y).sum(0)).mul_(s).neg_()
        sab = a * sb
        sa = a.mul_(s)
        ka, kb, kab = torch.mm(rows, sa), torch.mm(rows, sb), torch.mm(rows, sab)
        qa = (sa.view(wide_shape) * q3).sum(0).view(-1).mul_(i_q)
        qb = (sb.view(wide_shape) * q3).sum(0).view(-1).mul_(i_q)
        qab = (sab.view(wide_shape) * q3).sum(0).view(-1).mul_(i_q)
        # (p.s)_ab = p.(s a b) - (p.s) cov(a, b), likewise for q and mu; the two ratios lose the covariance
        r_ab = (kab[0] * i_p - (ka[0] * i_p) * (kb[0] * i_p) + (kab[1] - m * kab[2]) * X - ka[1] * kb[1] * 0.04
                - qab + qa * qb).view(shape)
        f_a, f_b = (omega * r_a).sum(1), (omega * r_b).sum(1)
        f_ab = (omega * (r_ab + r_a * r_b)).sum(1) - f_a * f_b
        self.g_R[0] = (alpha * f[1]).sum() + f_a.sum()
        self.g_R[1] = rho1 * ((alpha * f_b[1]).sum() + f_ab.sum() - f_a.sum())
        self.step_both(t)
        self.adam(self.R, self.g_R, self.M_R, self.V_R, t, self.n_phi * self.B * self.B / 2, -1e-3)
        self.R[1].clamp_min_(math.log(0.1))

    def concrete(self, x: Tensor, lik: Tensor, u: Tensor, t: int):
        """y = (lq + G)/tau, s = softmax(y). As tau y = lq + G, log q_tau(s) is
        const + sum lq - (tau+1)(sum y - C LSE y) - C (tau LSE y + log sum e^-G), and its total derivative in lq is
        (C s - 1)/tau. p(s, x) = softmax(theta)[argmax s] N(x; mu.s, 25)."""
        shape, K, C = (self.C, self.K, self.B), self.K, float(self.C)
        tau = 3 + (0.5 - 3) * (t - 1) / self.total
        h = self.tanh(self.W1, x)
        lq = torch.log_softmax(torch.mm(self.W2, h), 0)
        q = lq.exp()
        E = u.log_().neg_()
        log_sum_E = E.sum(0).log_().view(K, self.B)
        E.log_()
        y = (lq.unsqueeze(1) - E.view(shape)).view(self.C, -1).mul_(1 / tau)
        top = y.amax(0)
        self.argmax(y, top)
        sum_y = y.sum(0).view(K, self.B)
        s = y.sub_(top).exp_()
        total = s.sum(0)
        s.div_(total)
        lse = total.log_().add_(top).view(K, self.B)
        m = torch.mm(self.mu.t(), s).view(K, self.B)
        X = x[0] - m
        l = (X * X).mul_(-0.02).add_(sum_y, alpha=tau + 1).add_(log_sum_E.sub_(lse), alpha=C).sub_(lq.sum(0))
        l.add_(torch.mm(torch.log_softmax(self.theta_column, 0).t(), self.one_hot).view(K, self.B))
        w = torch.softmax(l, 0)
        self.theta_gradient(self.one_hot.view(shape).mul_(w).sum(1))
        # coefficient of lq_j: sum_k wbar_k [s_j ((mu_j - m) (x - m) / 25 - C) + 1] / tau
        X.mul_(0.04).mul_(w)
        s3 = s.view(shape)
        second = (s3 * (m * X).add_(w, alpha=C)).sum(1)
        d = s3.mul_(X).sum(1).mul_(self.mu).sub_(second).add_(self.one).mul_(1 / tau)
        self.backward(x, h, d - q * d.sum(0))
        self.step_both(t)

    def forward(self, x: Tensor, lik: Tensor, u: Tensor, v: Tensor, noise: Tensor):
        xs, liks, us, vs, noises = x.unbind(0), lik.unbind(0), u.unbind(0), v.unbind(0), noise.unbind(0)
        for i in range(len(xs)):
            self.t += 1
            if self.method == "ws" or self.method == "wws":
                self.ws(xs[i], liks[i], us[i], vs[i], noises[i], self.t)
            elif self.method == "dww":
                self.dww(xs[i], liks[i], us[i], vs[i], self.t)
            elif self.method == "relax":
                self.relax(xs[i], liks[i], us[i], vs[i], self.t)
            elif self.method == "rebar":
                self.rebar(xs[i], liks[i], us[i], vs[i], self.t)
            elif self.method == "concrete":
                self.concrete(xs[i], liks[i], us[i], self.t)
            else:
                self.wake(xs[i], liks[i], us[i], self.t)


class Source:
    """Fresh data and noise for a chunk of iterations."""

    def __init__(self, method, K, seed):
        self.rng = np.random.Generator(np.random.SFC64(seed))
        self.type = np.float64 if torch.get_default_dtype() == torch.float64 else np.float32
        self.method, self.K = method, K
        self.cdf = torch.cumsum(torch.arange(5, C + 5).to(torch.get_default_dtype()) / 290, 0)[:-1]
        self.mu = torch.arange(C).to(torch.get_default_dtype()).view(1, C, 1) * 10
        self.soft = method in ("relax", "rebar", "concrete")
        self.n = max(1, min(100, 200000 // (K * B * (C if self.soft else 1))))

    def uniform(self, *shape):
        return torch.from_numpy(self.rng.random(shape, dtype=self.type))

    def normal(self, *shape):
        return torch.from_numpy(self.rng.standard_normal(shape, dtype=self.type)).mul_(5)

    def chunk(self, n):
        z = torch.searchsorted(self.cdf, self.uniform(n, B), right=True)
        x = torch.ones(n, 2, B)
        torch.add(self.normal(n, B), z, alpha=10, out=x[:, 0])
        lik = (x[:, :1] - self.mu).square_().mul_(-0.02).add_(LOG_NORMAL)
        none = x.new_empty(n, 0)
        if self.soft:
            eps = 1e-6
            u = self.uniform(n, C, self.K * B).mul_(1 - 2 * eps).add_(eps)
            v = none if self.method == "concrete" else self.uniform(n, C, self.K * B).mul_(1 - 2 * eps).add_(eps)
            return x, lik, u, v, none
        u = self.uniform(n, self.K, B)
        if self.method in ("ws", "wws"):
            return x, lik, u, self.uniform(n, self.K * B), self.normal(n, self.K * B)
        return x, lik, u, self.uniform(n, self.K, B) if self.method == "dww" else none, none


def p_error(trainer):
    true = torch.arange(5, C + 5).double() / 290
    return float((torch.softmax(trainer.theta.double(), 0) - true).norm())


def train(method, K, iterations, seed):
    torch.manual_seed(seed)
    trainer = torch.jit.script(Trainer(method, K, iterations))
    source = Source(method, K, seed)
    # 20 parts; the first warms up, the fastest of the others counts
    parts = 20 if iterations >= 20 else 1
    seconds = math.inf
    for part in range(parts):
        n_part = iterations * (part + 1) // parts - iterations * part // parts
        start = time.perf_counter()
        for at in range(0, n_part, source.n):
            trainer(*source.chunk(min(source.n, n_part - at)))
        if part > 0 or parts == 1:
            seconds = min(seconds, (time.perf_counter() - start) / n_part)
    return seconds * 1e6, p_error(trainer)


# ---- check: the same gradients by autograd from the definitions, in double ----


def reference(trainer, P, R, x, lik, u, v, noise):
    """Gradients (theta, phi, rho or psi) in the trainer's units, for the parameters P, R before its iteration; where
    the iteration steps theta before phi, the new theta is read from the trainer."""
    method, K = trainer.method, trainer.K
    P, R = P.clone().requires_grad_(), R.clone().requires_grad_()
    W1, W2 = P[C:C + 2 * (H + 1)].view(H + 1, 2), P[C + 2 * (H + 1):].view(C, H + 1)
    columns = torch.arange(B)

    def guide(x):
        return torch.log_softmax(W2 @ torch.tanh(W1 @ x), 0)

    def invert(q, u):
        return (u.unsqueeze(0) >= q.cumsum(0)[:-1].unsqueeze(1)).sum(0)

    def gradient(value, wrt):
        return torch.autograd.grad(value, wrt, retain_graph=True)[0]

    lp, lq = torch.log_softmax(P[:C], 0), guide(x)
    q = lq.exp().detach()
    if method in ("relax", "rebar", "concrete"):
        g = lq.unsqueeze(1) - torch.log(-torch.log(u.view(C, K, B)))
        z = g.argmax(0)
    else:
        z = invert(q, u)
    score = lq[z, columns]
    l = (lp[z] + lik[z, columns] - score).detach()
    L = torch.logsumexp(l, 0) - math.log(K)
    wbar = torch.softmax(l, 0)
    if method == "concrete":
        tau = 3.0
        y = g / tau
        ls = y - torch.logsumexp(y, 0)
        mean = (ls.exp() * trainer.mu.view(C, 1, 1)).sum(0)
        log_q = (math.lgamma(C) + (C - 1) * math.log(tau) + (lq.unsqueeze(1) - (tau + 1) * ls).sum(0)
                 - C * torch.logsumexp(lq.unsqueeze(1) - tau * ls, 0))
        l = lp[z] - (x[0] - mean) ** 2 / 50 + LOG_NORMAL - log_q
        total = gradient(torch.logsumexp(l, 0).sum(), P)
        return total[:C], total[C:], None
    g_theta = gradient((wbar * lp[z]).sum(), P)[:C]
    new_theta = torch.log_softmax(trainer.theta, 0)
    if method == "dww":
        qd = (1 - DELTA) * q + DELTA / C
        z = invert(qd, v)
        w = torch.softmax(new_theta[z] + lik[z, columns] - qd.log()[z, columns], 0)
        return g_theta, gradient((w * lq[z, columns]).sum(), P)[C:], None
    if method in ("ws", "wws"):
        z = (v.unsqueeze(0) >= new_theta.exp().cumsum(0)[:-1].unsqueeze(1)).sum(0)
        x_s = torch.stack([10 * z + noise, torch.ones(K * B)])
        g_phi = gradient(guide(x_s)[z, torch.arange(K * B)].sum(), P)[C:]
        return g_theta, g_phi if method == "ws" else g_phi + K * gradient((wbar * score).sum(), P)[C:], None
    if method == "ww":
        return g_theta, gradient((wbar * score).sum(), P)[C:], None
    if method in ("reinforce", "vimco", "rloo"):
        a = []
        for k in range(K):
            rest = torch.cat([l[:k], l[k + 1:]])
            lse = torch.logsumexp(rest, 0)
            baseline = {"reinforce": 0 * lse, "rloo": lse - math.log(K - 1),
                        "vimco": torch.logaddexp(lse, rest.mean(0)) - math.log(K)}[method]
            a.append(L - baseline - wbar[k])
        return g_theta, gradient((torch.stack(a) * score).sum(), P)[C:], None
    if method == "nvil":
        A1, A2 = R[:2 * (HB + 1)].view(HB + 1, 2), R[2 * (HB + 1):].view(1, HB + 1)
        r = L - (A2 @ torch.tanh(A1 @ torch.stack([x[0] - MEAN_X, x[1]])))[0]
        centred = (r - 0.2 * r.mean()) / (0.2 * r.var(unbiased=False)).sqrt().clamp_min(1)
        signal = gradient(((centred.detach() - wbar) * score).sum(), P)
        return g_theta, signal[C:], gradient(-(r**2).sum() / 2, R)

    # relax, rebar: g_phi as a function of rho, J = |mean g_phi|^2 / D_phi
    e = -torch.log(v.view(C, K, B))
    hit = torch.arange(C).view(C, 1, 1) == z
    e_z = (e * hit).sum(0)
    gt = torch.where(hit, -torch.log(e_z).expand(C, K, B), -torch.log(e / lq.exp().unsqueeze(1) + e_z))
    assert bool((gt.argmax(0) == z).all())

    def c(g):
        if method == "rebar":
            s = torch.softmax(g / R[1].exp(), 0)
            mean = (trainer.mu.view(C, 1, 1) * s).sum(0)
            ps = (s * lp.detach().exp().view(C, 1, 1)).sum(0).log() - (x[0] - mean) ** 2 / 50 + LOG_NORMAL
            return R[0] * (torch.logsumexp(ps - (s * q.unsqueeze(1)).sum(0).log(), 0) - math.log(K))
        A1, A2, A3 = R[:17 * 22].view(17, 22), R[17 * 22:17 * 39].view(17, 17), R[17 * 39:].view(1, 17)
        y = torch.cat([x[:1].unsqueeze(1).expand(1, K, B), g, torch.ones(1, K, B)]).view(C + 2, -1)
        return (A3 @ torch.tanh(A2 @ torch.tanh(A1 @ y))).view(K, B).mean(0)

    signal = ((L - c(gt.detach())) * score.sum(0) + c(g) - c(gt) - (wbar * score).sum(0)).sum()
    g_phi = torch.autograd.grad(signal, P, create_graph=True)[0][C:]
    g_rho = gradient(((g_phi / B) ** 2).sum() / N_PHI, R)
    return g_theta, g_phi.detach(), g_rho * N_PHI * B * B / 2 * (K if method == "relax" else 1)


def check():
    torch.set_default_dtype(torch.float64)
    for method in METHODS:
        for K in (2, 5):
            torch.manual_seed(K)
            trainer, source = Trainer(method, K, 1), Source(method, K, K)
            trainer.theta.copy_(torch.randn(C))
            trainer.W1[:H].mul_(0.05)  # unsaturated, so that the first layer's gradient says something
            if method == "rebar":
                trainer.R.copy_(torch.tensor([0.7, 0.3]))
            chunk = source.chunk(1)
            P, R, inputs = trainer.P.clone(), trainer.R.clone(), [t[0].clone() for t in chunk]
            with torch.no_grad():
                trainer(*chunk)
            theta, phi, rho = reference(trainer, P, R, *inputs)
            pairs = [("theta", trainer.g_theta, theta), ("phi", trainer.G_phi, phi)]
            pairs += [] if rho is None else [("psi" if method == "nvil" else "rho", trainer.g_R, rho)]
            errors = {name: float((a - b).abs().max() / b.abs().max()) for name, a, b in pairs}
            print(f"{method:10s} K={K}", "  ".join(f"{name} {error:.1e}" for name, error in errors.items()))
            assert max(errors.values()) < 1e-9, (method, errors)
            step = trainer.P - P  # the first step of Adam is lr sign(g), but for eps
            assert float((step - 1e-3 * torch.sign(trainer.G))[trainer.G.abs() > 1].abs().max()) < 1e-8, method

    # enumeration of the C^2 pairs at K = 2: mean of a_k grad log q = gradient of E[L]
    for method in ("reinforce", "vimco", "rloo"):
        trainer = Trainer(method, 2, 1)
        trainer.theta.copy_(torch.randn(C))
        logit = torch.randn(C, 1, requires_grad=True)
        lik = LOG_NORMAL - (95 - trainer.mu) ** 2 / 5000
        lq = torch.log_softmax(logit, 0)
        z = torch.cartesian_prod(torch.arange(C), torch.arange(C)).t()
        l = (lik - lq).add(torch.log_softmax(trainer.theta_column, 0))[:, 0][z]
        P = lq[:, 0][z].sum(0).exp()
        exact = torch.autograd.grad((P * (torch.logsumexp(l, 0) - math.log(2))).sum(), logit)[0][:, 0]
        with torch.no_grad():
            n = torch.nn.functional.one_hot(z, C).sum(0).t().to(P.dtype)
            if method == "reinforce":
                wbar, L = trainer.bound(lik.expand(C, C * C), lq, n)
                a = n * L - wbar
            else:
                a = trainer.leave_one_out((lik - lq + trainer.theta_column).expand(C, C * C), n)[1]
            mean = ((a - lq.exp() * a.sum(0)) * P).sum(1)
        error = float((mean - exact).abs().max() / exact.abs().max())
        print(f"{method:10s} K=2 enumerated {error:.1e}")
        assert error < 1e-9, (method, error)


if __name__ == "__main__":
    if args.check:
        check()
        raise SystemExit
    if args.particles < (2 if args.method in ("vimco", "rloo") else 1):
        parser.error("vimco and rloo need 2 particles")
    with torch.no_grad():
        us, error = train(args.method, args.particles, args.iterations, args.seed)
    if args.json:
        print(json.dumps({"method": args.method, "particles": args.particles, "iterations": args.iterations,
                          "us_per_iteration": round(us, 2), "p_error": round(error, 6),
                          "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
    else:
        print(f"{args.method} K={args.particles}: {us:.1f} us per iteration, "
              f"p error {error:.4f} after {args.iterations}")
