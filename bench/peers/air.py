#!/usr/bin/python3
"""Training of Attend, Infer, Repeat in PyTorch, written for speed on the CPU.

The image encoder, and in the first step the whole recurrent part, run once per image. Only objects that are present are
computed: rows are compacted after each choice, and particles are sorted by their number of objects, so that the objects
of step t lie on the first canvases. Empty canvases are one per image. Bilinear sampling is separable: a canvas is
Wy glimpse Wx^T with tents as weights. Multilayer perceptrons and the likelihood have hand-written gradients that go
straight into the flat gradient; autograd does the rest.

With --prune (ww) all particles are sampled and weighted without gradients, and those that count run again with them.

    air.py --method ww --particles 5 --iterations 50 [--prune] --json
    air.py --check
"""
import math

import common
import numpy as np
import torch
from torch.nn.functional import elu_, grid_sample, logsigmoid, softplus

N = 3  # objects at most
SIDE, GLIMPSE = 50, 20
WHAT, WHERE, HIDDEN = 50, 4, 256
RATE = 1e-5
LOG_2PI = math.log(2 * math.pi)
LOW, HIGH = -88.0, 16.0  # of pixel logits
ROWS = 64  # canvases of a block

MLPS = {"decoder": (WHAT, 256, 256, GLIMPSE**2), "encoder": (SIDE**2, 256, HIDDEN), "rnn_e": (HIDDEN, HIDDEN),
        "rnn_z": (WHAT + WHERE, HIDDEN), "rnn_h": (HIDDEN, HIDDEN), "presence": (HIDDEN, 128, 64, 1),
        "where": (HIDDEN, 256, 256, 2 * WHERE), "glimpse": (GLIMPSE**2, 256, 256), "what": (256, 2 * WHAT)}
ELU_AT_END = {"encoder", "glimpse"}
NO_BIAS = {"rnn_z"}  # of the input's bias there is one, in rnn_e; rnn_p is the column of the last presence, always 1


def shapes():
    out = {"steps": (N + 1,), "image": (SIDE**2,), "canvas": (SIDE**2,), "first": (WHERE,), "prior0.W": (10, N + WHERE),
           "prior0.b": (10,), "prior1.W": (4, 10), "prior1.b": (4,), "prior_in.W": (4, 10), "prior_in.b": (4,),
           "prior2.W": (2 * WHERE, 4), "prior2.b": (2 * WHERE,), "h0": (HIDDEN,), "rnn_p": (HIDDEN,)}
    for name, sizes in MLPS.items():
        for i in range(len(sizes) - 1):
            out[f"{name}.{i}.W"] = sizes[i + 1], sizes[i]
            if name not in NO_BIAS:
                out[f"{name}.{i}.b"] = sizes[i + 1],
    return out


def initialise(p, mean):
    """Truncated normal weights of deviation 1/sqrt(inputs), biases 0."""
    for name, tensor in p.items():
        tensor.zero_()
        if name[-2:] == ".W" or name == "rnn_p":
            inputs = HIDDEN + WHAT + WHERE + 1 if name in ("rnn_e.0.W", "rnn_z.0.W", "rnn_p") else tensor.shape[-1]
            torch.nn.init.trunc_normal_(tensor, a=-2, b=2).div_(math.sqrt(inputs))
    p["image"].copy_(mean)
    p["canvas"].fill_(88)


def canvases(n, seed):
    """Grey images [n, 2500] of 0, 1 or 2 digits if `rws data multimnist` was run, else of blobs."""
    rng = np.random.default_rng(seed)
    file = common.cached("multimnist.canvases", 0)
    if file is not None and file[16:20].view("<u4")[0] == SIDE:
        n_all = int(file[24:28].view("<u4")[0])
        pixels = file[48 + n_all:][:n_all * SIDE**2].reshape(n_all, SIDE**2)
        return torch.from_numpy(pixels[rng.integers(0, n_all, n)] / 255).to(torch.get_default_dtype())
    side = np.arange(SIDE)
    out = np.zeros((n, SIDE, SIDE))
    for image in out:
        for _ in range(rng.integers(0, 3)):
            centre, width = rng.uniform(10, 40, (2, 1)), rng.uniform(2, 5, (2, 1))
            image += np.outer(*np.exp(-0.5 * ((side - centre) / width) ** 2))
    return torch.from_numpy(np.clip(out * 1.5 - 0.2, 0, 1).reshape(n, -1)).to(torch.get_default_dtype())


# ---- pieces with gradients by hand


class Mlp:
    """Linear layers with ELU between. Its gradient is added up in the flat gradient; `fresh` says that none is there."""

    def __init__(self, name, p, g):
        n = len(MLPS[name]) - 1
        get = lambda of, i, letter: of.get(f"{name}.{i}.{letter}")
        self.layers = [(get(p, i, "W"), get(p, i, "b"), get(g, i, "W"), get(g, i, "b"), i < n - 1 or name in ELU_AT_END)
                       for i in range(n)]
        self.fresh = True

    def __call__(self, x):
        return Apply.apply(x, self, ANCHOR)


ANCHOR = torch.zeros(0, requires_grad=True)  # without it autograd sees nothing to differentiate


class Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mlp, anchor):
        ctx.mlp, ctx.inputs = mlp, [x]
        for W, b, _, _, bend in mlp.layers:
            x = torch.mm(x, W.t()) if b is None else torch.addmm(b, x, W.t())
            if bend:
                elu_(x)
            ctx.inputs.append(x)
        return x

    @staticmethod
    def backward(ctx, d):
        beta = 0 if ctx.mlp.fresh else 1
        ctx.mlp.fresh = False
        for i, (W, b, gW, gb, bend) in reversed(list(enumerate(ctx.mlp.layers))):
            if bend:
                d = torch.ops.aten.elu_backward(d, 1.0, 1.0, 1.0, True, ctx.inputs[i + 1])
            torch.addmm(gW, d.t(), ctx.inputs[i], beta=beta, out=gW)
            if b is not None:
                gb.mul_(beta).add_(d.sum(0))
            d = torch.mm(d, W) if i > 0 or ctx.needs_input_grad[0] else None
        return d, None, None


class Tent(torch.autograd.Function):
    """Weights [n, i, j] = max(0, 1 - |x_i - j|) of bilinear interpolation, from source coordinates x [n, i]."""

    @staticmethod
    def forward(ctx, x, j):
        distance = x.unsqueeze(2) - j
        weights = torch.sub(1, distance.abs()).relu_()
        ctx.save_for_backward(distance, weights)
        return weights

    @staticmethod
    def backward(ctx, d):
        distance, weights = ctx.saved_tensors
        return (distance.sign() * weights.sign()).mul_(d).sum(2).neg_(), None


class Likelihood(torch.autograd.Function):
    """log p(x|canvas) [canvases]. The objects of step t, counts[t] of them, lie on the first canvases.

    glimpses [n, 20, 20], Wy, Wx [n, 50, 20] of the objects of all steps; logit_m and c [2500]; x [canvases, 2500]."""

    @staticmethod
    def forward(ctx, glimpses, Wy, Wx, logit_m, c, x, counts):
        n_canvases, half_side = len(x), SIDE**2 // 2
        half = torch.bmm(Wy, glimpses)
        ones = x.new_ones(GLIMPSE)
        ay, ax = torch.matmul(Wy, ones).unsqueeze(2), torch.matmul(Wx, ones).unsqueeze(1)
        keep = ctx.needs_input_grad[0]
        # minus the logits, later their gradient; and the mask
        minus_y, mask = x.new_empty(2, n_canvases if keep else ROWS, SIDE**2)
        minus_half, ay20, lift = -half, 20 * ay, -(logit_m + c)
        out = x.new_empty(n_canvases)
        for low in range(0, n_canvases, ROWS):
            high = min(low + ROWS, n_canvases)
            xb, block = x[low:high], slice(low, high) if keep else slice(0, high - low)
            yb, ab = minus_y[block], mask[block]
            y3, a3 = yb.view(-1, SIDE, SIDE), ab.view(-1, SIDE, SIDE)
            n = max(0, min(high, counts[0]) - low)
            yb[n:], ab[n:] = 0, -10
            at = 0
            for t, count in enumerate(counts):
                n = min(high, count) - low
                if n > 0:
                    o = slice(at + low, at + low + n)
                    if t == 0:
                        torch.bmm(minus_half[o], Wx[o].transpose(1, 2), out=y3[:n])
                        torch.mul(ay20[o], ax[o], out=a3[:n]).sub_(10)
                    else:
                        y3[:n] += torch.bmm(minus_half[o], Wx[o].transpose(1, 2))
                        a3[:n].addcmul_(ay20[o], ax[o])
                at += count
            yb.addcmul_(ab.sigmoid_(), lift).add_(c)
            least, most = torch.aminmax(yb)
            inside = None
            if least < -HIGH or most > -LOW:
                inside = (yb >= -HIGH).logical_and_(yb <= -LOW)
                yb.clamp_(-HIGH, -LOW)
            # softplus(y) = -log r, r = sigmoid(-y) >= 1e-7: four to a logarithm
            log_p = torch.mul(xb, yb).sum(1).neg_()
            r = yb.sigmoid_()
            two = torch.mul(r[:, :half_side], r[:, half_side:])
            log_p += torch.mul(two[:, :half_side // 2], two[:, half_side // 2:]).log_().sum(1)
            out[low:high] = log_p
            if keep:  # d log p / d logits
                yb.add_(xb).sub_(1)
                if inside is not None:
                    yb.mul_(inside)
        ctx.counts = counts
        ctx.save_for_backward(minus_y, mask, half, glimpses, Wy, Wx, ay, ax, lift)
        return out

    @staticmethod
    def backward(ctx, d):
        residual, mask, half, glimpses, Wy, Wx, ay, ax, lift = ctx.saved_tensors
        dc = torch.mv(residual.t(), d).neg_()
        d_logits = residual.mul_(d.unsqueeze(1))
        pathwise = ctx.needs_input_grad[1]
        # first the sum of mask * d_logits: of logit_m and, with the sum above, of c
        covered = torch.mul(mask, d_logits)
        d_m = covered.sum(0)
        dc += d_m
        d_glimpses = torch.empty_like(glimpses)
        dWy, dWx = (torch.empty_like(Wy), torch.empty_like(Wx)) if pathwise else (None, None)
        d3 = d_logits.view(-1, SIDE, SIDE)
        if pathwise:
            da3 = torch.sub(1, mask).mul_(covered).mul_(lift).mul_(-20).view(-1, SIDE, SIDE)
        at = 0
        for count in ctx.counts:
            o, at = slice(at, at + count), at + count
            right = torch.bmm(d3[:count], Wx[o])  # [50, 20]
            torch.bmm(Wy[o].transpose(1, 2), right, out=d_glimpses[o])
            if pathwise:
                torch.bmm(right, glimpses[o].transpose(1, 2), out=dWy[o])
                torch.bmm(d3[:count].transpose(1, 2), half[o], out=dWx[o])
                dWy[o] += torch.bmm(da3[:count], ax[o].transpose(1, 2))
                dWx[o] += torch.bmm(ay[o].transpose(1, 2), da3[:count]).transpose(1, 2)
        return d_glimpses, dWy, dWx, d_m, dc, None, None


def log_normal(z, mu, sd):
    """Sum over the last axis."""
    return -(((z - mu) / sd).square_().mul(0.5) + sd.log()).sum(1) - 0.5 * LOG_2PI * z.shape[1]


# ---- guide and model


class Samples:
    """n [particles]; where, what and their noise, a tensor per step with a row per object; the particles of the rows."""

    def __init__(self):
        self.where, self.what, self.where_noise, self.what_noise, self.particles = [], [], [], [], []

    def select(self, index):
        """Those of the particles in the index, which is ascending."""
        out = Samples()
        out.n = self.n[index]
        place = torch.full((len(self.n),), -1)
        place[index] = torch.arange(len(index))
        for where, what, particles in zip(self.where, self.what, self.particles):
            at = place[particles]
            rows = (at >= 0).nonzero()[:, 0]
            out.where.append(where[rows])
            out.what.append(what[rows])
            out.particles.append(at[rows])
        return out


class Trainer:
    def __init__(self, team, args, grey, mean):
        self.team, self.args, self.grey, self.t = team, args, grey, 0
        self.pathwise = args.method == "vimco"
        self.coefficients = common.coefficients
        p, g = common.views(team.P, shapes()), common.views(team.G, shapes())
        self.views, self.g = p, g
        if team.rank == 0:
            torch.manual_seed(args.seed)
            with torch.no_grad():
                initialise(p, mean)
        self.mlps = {name: Mlp(name, p, g) for name in MLPS}
        self.p = {name: tensor.detach().requires_grad_() for name, tensor in p.items() if ".0." not in name and
                  name.split(".")[0] not in MLPS}
        for name, tensor in self.p.items():
            tensor.grad = g[name]
        with torch.no_grad():
            self.optimiser = common.RMSProp(team, 0, len(team.P), RATE)
        self.random = torch.Generator().manual_seed(args.seed * 1000 + team.rank)
        self.j = torch.arange(float(GLIMPSE)).to(mean.dtype)
        self.u50 = torch.linspace(-1, 1, SIDE, dtype=mean.dtype)
        self.u20 = torch.linspace(-1, 1, GLIMPSE, dtype=mean.dtype)

    def rand(self, draw, *shape):
        return draw(shape, generator=self.random)

    def read(self, x, where, b):
        """Glimpses [n, 400] at where [n, 4] of the images b."""
        s, shift = where[:, :2].sigmoid().clamp_min(1e-4), where[:, 2:].tanh()
        grid = torch.stack(torch.broadcast_tensors(
            (s[:, :1] * self.u20 + shift[:, :1]).unsqueeze(1), (s[:, 1:] * self.u20 + shift[:, 1:]).unsqueeze(2)), 3)
        images = x.index_select(0, b).view(-1, 1, SIDE, SIDE)
        return grid_sample(images, grid, align_corners=True).view(-1, GLIMPSE**2)

    def guide(self, x, base, b, given):
        """Runs q for particles of the images b [particles]: at the given samples, or at new ones.

        Returns the samples, and log q of the choices and of the objects: rows, and the particles they belong to."""
        p, net = self.p, self.mlps
        z = given or Samples()
        logits, present, owners, where_parts, what_parts = [], [], [], [], []
        # step 1: one state per image
        h = torch.tanh(base + net["rnn_h"](p["h0"].unsqueeze(0)))
        logit = net["presence"](h)[:, 0].index_select(0, b) + 1
        particles = torch.arange(len(b))
        for t in range(N):
            if given:
                yes = given.n.index_select(0, particles) > t
            else:
                yes = self.rand(torch.rand, len(particles)) < logit.detach().sigmoid()
            logits.append(logit)
            present.append(yes)
            owners.append(particles)
            rows = yes.nonzero()[:, 0]
            particles = particles.index_select(0, rows)
            image = b.index_select(0, particles)
            if t == 0:
                out = net["where"](h).index_select(0, image)
                h = net["rnn_h"](h).index_select(0, image)
            else:
                h = h.index_select(0, rows)
                out = net["where"](h)
                if t < N - 1:
                    h = net["rnn_h"](h)
            mu, sd = out[:, :WHERE], softplus(out[:, WHERE:] - 3) + 0.01
            where = given.where[t] if given else self.draw(mu, sd, z.where, z.where_noise)
            where_parts += [(where, mu, sd)]
            out = net["what"](net["glimpse"](self.read(x, where, image)))
            mu, sd = out[:, :WHAT], softplus(out[:, WHAT:]) + 0.01
            what = given.what[t] if given else self.draw(mu, sd, z.what, z.what_noise)
            what_parts += [(what, mu, sd)]
            if not given:
                z.particles.append(particles)
            if t < N - 1:
                h = torch.tanh(h + net["rnn_z"](torch.cat([what, where], 1)) + base.index_select(0, image))
                logit = net["presence"](h)[:, 0] + 1
        cat = lambda parts: [torch.cat(column) for column in zip(*parts)]
        if not given:
            z.n = torch.zeros(len(b), dtype=torch.int64)
            for particles in z.particles:
                z.n[particles] += 1
        logits = torch.cat(logits)
        log_q_n = logsigmoid(torch.where(torch.cat(present), logits, -logits))
        log_q_z = log_normal(*cat(where_parts)) + log_normal(*cat(what_parts))
        return z, log_q_n, torch.cat(owners), log_q_z

    def draw(self, mu, sd, values, noises):
        noise = self.rand(torch.randn, *mu.shape)
        value = mu + sd * noise
        values.append(value if self.pathwise else value.detach())
        noises.append(noise)
        return values[-1]

    def where_prior(self):
        """mu, sd [n, 4] for n = 1 … N."""
        p = self.p
        first = torch.cat([p["first"].expand(N, WHERE), torch.ones(N, N).tril()], 1)
        h = torch.nn.functional.elu(torch.addmm(p["prior0.b"], first, p["prior0.W"].t()))
        y = torch.tanh(torch.addmm(p["prior1.b"] + p["prior_in.b"], h, p["prior1.W"].t()))
        out = torch.addmm(p["prior2.b"], y, p["prior2.W"].t())
        return out[:, :WHERE], softplus(out[:, WHERE:]) + 0.01

    def model(self, x, b, z):
        """log p of the counts [particles], of the objects, in the order of z, and of canvases; the particles' canvases."""
        p, n = self.p, z.n
        log_p_n = torch.log_softmax(p["steps"], 0).index_select(0, n)
        where, what, owners = (torch.cat(rows) for rows in (z.where, z.what, z.particles))
        mu, sd = self.where_prior()
        number = n.index_select(0, owners) - 1
        log_p_z = log_normal(where, mu.index_select(0, number), sd.index_select(0, number))
        log_p_z = log_p_z - (0.5 * what.square().sum(1) + 0.5 * LOG_2PI * WHAT)
        # canvases: particles by falling n, then the empty ones of the images
        order = torch.sort(n, descending=True, stable=True)[1]
        counts = [len(rows) for rows in z.particles]
        order = order[:counts[0]]
        canvas = b + counts[0]
        canvas[order] = torch.arange(counts[0])
        place = torch.cat([canvas.index_select(0, rows).sort()[1] + at for rows, at in
                           zip(z.particles, np.cumsum([0] + counts).tolist())])
        where, what = where.index_select(0, place), what.index_select(0, place)
        glimpses = self.mlps["decoder"](what).mul(0.25).view(-1, GLIMPSE, GLIMPSE)
        s, shift = where[:, :2].sigmoid().clamp_min(1e-4), where[:, 2:].tanh()
        source = ((self.u50 - shift.unsqueeze(2)) / s.unsqueeze(2) + 1) * ((GLIMPSE - 1) / 2)  # [n, 2, 50], x then y
        Wx, Wy = Tent.apply(source[:, 0], self.j), Tent.apply(source[:, 1], self.j)
        log_p_x = Likelihood.apply(glimpses, Wy, Wx, torch.logit(p["image"], 1e-4), p["canvas"],
                                   torch.cat([x.index_select(0, b.index_select(0, order)), x]), counts)
        return log_p_n, log_p_z, owners, log_p_x, canvas

    def scores(self, x, base, b, given=None):
        z, log_q_n, choosers, log_q_z = self.guide(x, base, b, given)
        log_p_n, log_p_z, owners, log_p_x, canvas = self.model(x, b, z)
        with torch.no_grad():
            n = len(b)
            self.log_p = log_p_n + log_p_x.index_select(0, canvas) + x.new_zeros(n).index_add_(0, owners, log_p_z)
            self.log_q = x.new_zeros(n).index_add_(0, choosers, log_q_n).index_add_(0, owners, log_q_z)

        def target(cp, cq_n, cq_z):
            """With coefficients of log p, of log q of the choices and of the objects, a number per particle."""
            at = lambda c, index: c.index_select(0, index)
            cx = torch.zeros_like(log_p_x).index_add_(0, canvas, cp)
            return (log_p_n @ cp + log_p_z @ at(cp, owners) + log_p_x @ cx + log_q_n @ at(cq_n, choosers)
                    + log_q_z @ at(cq_z, owners))
        return z, target

    def iterate(self):
        args, K = self.args, self.args.particles
        grey = self.grey[self.t % len(self.grey)]
        self.t += 1
        x = (self.rand(torch.rand, *grey.shape) < grey).to(grey.dtype)
        B = len(x)
        b = torch.arange(B).repeat(K)
        for tensor in self.p.values():
            tensor.grad.zero_()
        for mlp in self.mlps.values():
            mlp.fresh = True
        p, net = self.p, self.mlps
        base = net["rnn_e"](net["encoder"](x)) + p["rnn_p"]
        if args.prune:
            with torch.no_grad():
                z, _ = self.scores(x, base, b)
                l = (self.log_p - self.log_q).view(K, B)
                L, w, _ = self.coefficients("ww", l)
                keep = common.kept(w)
                keep = keep[0] * B + keep[1]
                w = (w.view(-1)[keep] / args.batch).to(x.dtype)
            _, target = self.scores(x, base, b[keep], z.select(keep))
            target(w, w, w).backward()
        else:
            z, target = self.scores(x, base, b)
            l = (self.log_p - self.log_q).view(K, B)
            L, w, cq = self.coefficients(args.method, l)
            w, cq = ((c / args.batch).view(-1).to(x.dtype) for c in (w, cq))
            # vimco: w (log p - log q) + (L - baseline) log q(n); cq is already L - baseline - w
            (target(w, cq, -w) if self.pathwise else target(w, w, w)).backward()
        self.x, self.z, self.l = x, z, l
        with torch.no_grad():
            self.optimiser.step()
        return float(L.mean())


# ---- check


def plain(p, method, coefficients, x, n, where, what, where_noise, what_noise):
    """Bound and gradient from the definitions, a particle and an object at a time, by autograd in double. n [K, B],
    the others [K, B, N, .]: with vimco the noises are given and where and what follow."""
    K = len(n)
    p = {name: tensor.detach().clone().requires_grad_() for name, tensor in p.items()}

    def mlp(name, h):
        for i in range(len(MLPS[name]) - 1):
            h = p[f"{name}.{i}.W"] @ h + p.get(f"{name}.{i}.b", 0)
            if i < len(MLPS[name]) - 2 or name in ELU_AT_END:
                h = torch.nn.functional.elu(h)
        return h

    def bilinear(image, X, Y):
        """image [H, W] at columns X and rows Y; 0 outside."""
        height, width = image.shape
        fx, fy = X.detach().floor().long(), Y.detach().floor().long()
        out = 0
        for cx, wx in ((fx, fx + 1 - X), (fx + 1, X - fx)):
            for cy, wy in ((fy, fy + 1 - Y), (fy + 1, Y - fy)):
                inside = (cx >= 0) & (cx < width) & (cy >= 0) & (cy < height)
                out = out + inside * wx * wy * image[cy.clamp(0, height - 1), cx.clamp(0, width - 1)]
        return out

    def lattice(n):
        u = torch.linspace(-1, 1, n)
        return u.view(1, n), u.view(n, 1)

    def place(where):
        return where[:2].sigmoid().clamp_min(1e-4), where[2:].tanh()

    normal = lambda z, mu, sd: torch.distributions.Normal(mu, sd).log_prob(z).sum()
    rows, counts = [], []
    for k in range(K):
        for b in range(len(x)):
            image = x[b].view(SIDE, SIDE)
            e = mlp("encoder", x[b])
            h, z_what, z_where = p["h0"], torch.zeros(WHAT), torch.zeros(WHERE)
            log_q_n = log_q_z = log_p_z = torch.tensor(0.0)
            number = int(n[k, b])
            y, a = torch.zeros(SIDE, SIDE), torch.zeros(SIDE, SIDE)
            for t in range(N):
                h = torch.tanh(mlp("rnn_e", e) + mlp("rnn_z", torch.cat([z_what, z_where])) + p["rnn_p"] + mlp("rnn_h", h))
                logit = mlp("presence", h)[0] + 1
                if t >= number:
                    log_q_n = log_q_n + logsigmoid(-logit)
                    break
                log_q_n = log_q_n + logsigmoid(logit)
                out = mlp("where", h)
                mu, sd = out[:4], softplus(out[4:] - 3) + 0.01
                z_where = mu + sd * where_noise[k, b, t] if method == "vimco" else where[k, b, t]
                log_q_z = log_q_z + normal(z_where, mu, sd)
                s, shift = place(z_where)
                ux, uy = lattice(GLIMPSE)
                X, Y = torch.broadcast_tensors((s[0] * ux + shift[0] + 1) * (SIDE - 1) / 2,
                                               (s[1] * uy + shift[1] + 1) * (SIDE - 1) / 2)
                out = mlp("what", mlp("glimpse", bilinear(image, X, Y).reshape(-1)))
                mu, sd = out[:WHAT], softplus(out[WHAT:]) + 0.01
                z_what = mu + sd * what_noise[k, b, t] if method == "vimco" else what[k, b, t]
                log_q_z = log_q_z + normal(z_what, mu, sd)
                # the model's side
                first = torch.nn.functional.elu(p["prior0.W"] @ torch.cat([p["first"], (torch.arange(N) < number) * 1.0])
                                                + p["prior0.b"])
                out = p["prior2.W"] @ torch.tanh(p["prior_in.b"] + p["prior1.W"] @ first + p["prior1.b"]) + p["prior2.b"]
                log_p_z = log_p_z + normal(z_where, out[:4], softplus(out[4:]) + 0.01)
                log_p_z = log_p_z + normal(z_what, torch.zeros(WHAT), torch.ones(WHAT))
                glimpse = 0.25 * mlp("decoder", z_what).view(GLIMPSE, GLIMPSE)
                ux, uy = lattice(SIDE)
                X, Y = torch.broadcast_tensors(((ux - shift[0]) / s[0] + 1) * (GLIMPSE - 1) / 2,
                                               ((uy - shift[1]) / s[1] + 1) * (GLIMPSE - 1) / 2)
                y = y + bilinear(glimpse, X, Y)
                a = a + bilinear(torch.ones(GLIMPSE, GLIMPSE), X, Y)
            M = torch.sigmoid(-10 + 20 * a)
            m, c = p["image"].view(SIDE, SIDE).clamp(1e-4, 1 - 1e-4), p["canvas"].view(SIDE, SIDE)
            logits = (y + M * (m.log() - (1 - m).log()) + (M - 1) * c).clamp(-88, 16)
            log_p_x = (image * logits - softplus(logits)).sum()
            log_p = torch.log_softmax(p["steps"], 0)[number] + log_p_z + log_p_x
            rows.append(torch.stack([log_p, log_q_n, log_q_z]))
    log_p, log_q_n, log_q_z = torch.stack(rows).view(K, len(x), 3).unbind(2)
    l = log_p - log_q_n - log_q_z
    L = torch.logsumexp(l, 0) - math.log(K)
    w, score = coefficients
    target = w * (log_p + log_q_n + log_q_z) if method == "ww" else w * l + (score + w) * log_q_n
    grads = torch.autograd.grad(target.sum(0).mean(), list(p.values()), allow_unused=True)
    return L, {name: torch.zeros_like(p[name]) if g is None else g for name, g in zip(p, grads)}


def check(args):
    common.check_team()
    torch.set_default_dtype(torch.float64)
    assert common.size(shapes()) == 1220973 + 186864, common.size(shapes())
    args.batch = 3
    for args.method, args.particles, args.prune in (("ww", 1, False), ("ww", 4, False), ("ww", 4, True), ("vimco", 2, False),
                                                    ("vimco", 4, False)):
        K, B = args.particles, args.batch
        common.check_coefficients(args.method)
        grey, mean = canvases(B, 5).clamp(0.02, 0.98), canvases(100, 6).mean(0)
        trainer = Trainer(common.Team(1, common.size(shapes())), args, grey.unsqueeze(0), mean)
        trainer.coefficients = common.random_coefficients
        with torch.no_grad():
            # away from the start, where many gradients are 0
            trainer.views["canvas"].copy_(1 + torch.rand(SIDE**2))
            trainer.views["image"].copy_(0.2 + 0.6 * torch.rand(SIDE**2))
            for name, tensor in trainer.views.items():
                if name not in ("canvas", "image"):
                    tensor.add_(torch.randn(tensor.shape), alpha=0.02)
            p = {name: tensor.clone() for name, tensor in trainer.views.items()}
        trainer.iterate()
        z = trainer.z
        tables = [torch.zeros(K * B, N, width) for width in (WHERE, WHAT, WHERE, WHAT)]
        for out, rows in zip(tables, (z.where, z.what, z.where_noise, z.what_noise)):
            for t, values in enumerate(rows):
                out[z.particles[t], t] = values.detach()
        L, w, score = common.random_coefficients(args.method, trainer.l)
        plain_L, g = plain(p, args.method, (w, score), trainer.x, z.n.view(K, B), *(t.view(K, B, N, -1) for t in tables))
        errors = {name: float((trainer.g[name] - g[name]).norm() / g[name].norm().clamp_min(1e-12)) for name in g}
        worst = max(errors, key=errors.get)
        error = float((L - plain_L).abs().max())
        print("%-6s K=%-3d %-8s bound %.1e, worst gradient %s %.1e; %d objects" %
              (args.method, K, "pruned" if args.prune else "", error, worst, errors[worst], z.n.sum()))
        assert error < 1e-8 and errors[worst] < 1e-9, errors


def make(args):
    def trainer(team):
        n = args.batch // team.size + (team.rank < args.batch % team.size)
        grey = canvases(10 * n, args.seed * 100 + team.rank).view(10, n, -1)
        return Trainer(team, args, grey, canvases(1000, 8).mean(0))
    return trainer


if __name__ == "__main__":
    parser = common.options(__doc__, ["ww", "vimco"], batch=32, particles=5, iterations=55, prune=True)
    args = parser.parse_args()
    if args.prune and args.method != "ww":
        parser.error("--prune goes with ww, whose weights are all that is needed of most particles")
    check(args) if args.check else common.measure(args, common.size(shapes()), make(args), even=True)
