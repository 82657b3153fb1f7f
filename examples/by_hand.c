/* by_hand.c - wake-wake for the Gaussian mixture of the paper, with nothing of the library: what the library does.
 *     cc -O2 -o by_hand examples/by_hand.c -lm && ./by_hand
 *
 * Model       p(z, x): z ~ softmax(theta), one of C components, and x ~ N(10 z, 5^2). Theta is to be learned.
 * Guide       q(z | x): a network with the parameters phi. It is to become the posterior of the model.
 * Particles   z_1 ... z_K: values of z that the guide draws for a datum x; with weights, an estimate of the posterior.
 * Weights     w_k = p(z_k, x) / q(z_k | x), divided by their sum: what the guide proposes too often counts less.
 * Learning    theta follows sum_k w_k d log p(z_k, x) / d theta   (wake-theta: explain the data better),
 *             phi follows   sum_k w_k d log q(z_k | x) / d phi    (wake-phi: propose what turned out to be good).
 *
 * The weights count as constants and no draw is differentiated, so that z may be discrete. In rws, model and guide are
 * programs that branch, loop and recurse, and z is all that they choose on their way; the formulas are the same. */
#include <math.h>
#include <stdio.h>

enum { C = 20, H = 16, B = 100, K = 20, N_TEST = 100, ITERATIONS = 20000, EVERY = 2000 };

/* All that is learned. Gradients and the averages of Adam have the same type: one loop over n_params numbers. */
typedef struct {
    double theta[C];                      /* logits of the mixture */
    double w1[H], b1[H], w2[C][H], b2[C]; /* phi: q(z | x) = softmax(w2 tanh(w1 x + b1) + b2) */
} params;
enum { n_params = sizeof(params) / sizeof(double) };

static double uniform(void) /* in [0, 1), the same numbers in every run */
{
    static unsigned long long state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

static int draw(const double probability[C])
{
    double u = uniform();
    int    z = 0;
    while (z < C - 1 && (u -= probability[z]) >= 0) z++;
    return z;
}

static double datum(const double truth[C])
{
    const double mean = 10 * draw(truth), radius = sqrt(-2 * log(1 - uniform()));
    return mean + 5 * radius * cos(2 * 3.14159265358979 * uniform());
}

static void softmax(const double logits[C], double probability[C])
{
    double top = logits[0], sum = 0;
    for (int c = 1; c < C; c++) top = fmax(top, logits[c]);
    for (int c = 0; c < C; c++) sum += probability[c] = exp(logits[c] - top);
    for (int c = 0; c < C; c++) probability[c] /= sum;
}

static double log_joint(const double prior[C], int z, double x) /* log p(z, x) but for a constant */
{
    const double d = (x - 10 * z) / 5;
    return log(prior[z]) - 0.5 * d * d;
}

static void guide(const params *p, double x, double hidden[H], double q[C])
{
    double logits[C];
    for (int h = 0; h < H; h++) hidden[h] = tanh(p->w1[h] * x + p->b1[h]);
    for (int c = 0; c < C; c++) {
        logits[c] = p->b2[c];
        for (int h = 0; h < H; h++) logits[c] += p->w2[c][h] * hidden[h];
    }
    softmax(logits, q);
}

/* Draws K particles for x. share[c] becomes the weight of all particles with z = c: an estimate of p(c | x). */
static void weigh(const double prior[C], const double q[C], double x, double share[C])
{
    int    z[K];
    double log_w[K], top = -INFINITY, sum = 0;
    for (int k = 0; k < K; k++) {
        z[k] = draw(q);
        log_w[k] = log_joint(prior, z[k], x) - log(q[z[k]]);
        top = fmax(top, log_w[k]); /* the largest weight becomes exp(0): no overflow, and the sum is at least 1 */
    }
    for (int k = 0; k < K; k++) sum += exp(log_w[k] - top);
    for (int c = 0; c < C; c++) share[c] = 0;
    for (int k = 0; k < K; k++) share[z[k]] += exp(log_w[k] - top) / sum;
}

/* Adds the gradients of a datum to g. For a softmax, d log p(z) / d logit_c = [z = c] - p(c); the weights sum to 1. */
static void backward(const params *p, double x, const double prior[C], const double hidden[H], const double q[C],
                     const double share[C], params *g)
{
    double back[H] = {0};
    for (int c = 0; c < C; c++) {
        const double d = share[c] - q[c];
        g->theta[c] += share[c] - prior[c], g->b2[c] += d;
        for (int h = 0; h < H; h++) g->w2[c][h] += d * hidden[h], back[h] += d * p->w2[c][h];
    }
    for (int h = 0; h < H; h++) {
        const double d = back[h] * (1 - hidden[h] * hidden[h]);
        g->w1[h] += d * x, g->b1[h] += d;
    }
}

static void adam(double *p, const double *g, double *mean, double *square, int t)
{
    const double mean_scale = 1 - pow(0.9, t), square_scale = 1 - pow(0.999, t);
    for (int i = 0; i < n_params; i++) {
        const double d = g[i] / B;
        mean[i] += 0.1 * (d - mean[i]), square[i] += 0.001 * (d * d - square[i]);
        p[i] += 1e-3 * (mean[i] / mean_scale) / (sqrt(square[i] / square_scale) + 1e-8); /* uphill */
    }
}

/* p_error: distance of the learned mixture from the true one; q_error: of the guide from the true posterior. */
static void report(int iteration, const params *p, const double truth[C], const double test[N_TEST])
{
    double prior[C], logits[C], posterior[C], hidden[H], q[C], p_error = 0, q_error = 0;
    for (int i = 0; i < N_TEST; i++) {
        for (int c = 0; c < C; c++) logits[c] = log_joint(truth, c, test[i]);
        softmax(logits, posterior), guide(p, test[i], hidden, q);
        double error = 0;
        for (int c = 0; c < C; c++) error = hypot(error, q[c] - posterior[c]);
        q_error += error / N_TEST;
    }
    softmax(p->theta, prior);
    for (int c = 0; c < C; c++) p_error = hypot(p_error, prior[c] - truth[c]);
    printf("%9d   %7.4f   %7.4f\n", iteration, p_error, q_error);
}

int main(void)
{
    static params p, g, mean, square; /* zeros */
    double        truth[C], test[N_TEST], prior[C], hidden[H], q[C], share[C];
    for (int c = 0; c < C; c++) truth[c] = (c + 5) / 290.0, p.theta[c] = C - 1 - c; /* a start far from the truth */
    for (int h = 0; h < H; h++) p.w1[h] = 2 * uniform() - 1, p.b1[h] = 2 * uniform() - 1;
    for (int i = 0; i < C * H; i++) p.w2[i / H][i % H] = (2 * uniform() - 1) / sqrt(H);
    for (int i = 0; i < N_TEST; i++) test[i] = datum(truth);
    puts("iteration   p_error   q_error");
    report(0, &p, truth, test);
    for (int t = 1; t <= ITERATIONS; t++) {
        g = (params){0};
        softmax(p.theta, prior);
        for (int i = 0; i < B; i++) {
            const double x = datum(truth); /* new data in each iteration */
            guide(&p, x, hidden, q);
            weigh(prior, q, x, share);
            backward(&p, x, prior, hidden, q, share, &g);
        }
        adam((double *)&p, (const double *)&g, (double *)&mean, (double *)&square, t);
        if (t % EVERY == 0) report(t, &p, truth, test);
    }
}
