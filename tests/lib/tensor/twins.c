/* twins.c - the tables of twins, and what twins share. */
#include "twins.h"

#include <string.h>

const subject_table *const subject_tables[] = {&tensor_twins,     &matrix_twins, &discrete_twins,
                                               &continuous_twins, &vision_twins, NULL};

const subject *subject_of(const char *name)
{
    for (int n = 0; subject_tables[n]; n++)
        for (int i = 0; i < subject_tables[n]->n; i++)
            if (strcmp(subject_tables[n]->list[i].name, name) == 0) return &subject_tables[n]->list[i];
    return NULL;
}

/* The derivative of log Gamma: the sum of 1 / k - 1 / (k + x - 1) over k = 1, 2, … and minus Euler's constant. The rest of
 * the sum after N terms is (x - 1) / N (1 - x / (2 N)) with an error below 1e-9. */
double slope_of_lgamma(double x)
{
    enum { N = 4000 };
    double total = -0.57721566490153286 + (x - 1) / N * (1 - x / (2.0 * N));
    for (int k = N; k > 0; k--) total += 1.0 / k - 1 / (k + x - 1);
    return total;
}

double function(int f, double x)
{
    switch ((rws_function)f) {
    case RWS_LINEAR: return x;
    case RWS_TANH: return tanh(x);
    case RWS_RELU: return fmax(x, 0);
    case RWS_ELU: return x > 0 ? x : exp(x) - 1;
    case RWS_SIGMOID: return 1 / (1 + exp(-x));
    case RWS_SOFTPLUS: return log(1 + exp(x));
    case RWS_EXP: return exp(x);
    case RWS_LOG: return log(x);
    case RWS_SQRT: return sqrt(x);
    case RWS_SQUARE: return pow(x, 2);
    case RWS_SIN: return sin(x);
    case RWS_COS: return cos(x);
    case RWS_ABS: return x < 0 ? -x : x;
    case RWS_LOG_SIGMOID: return log(1 / (1 + exp(-x)));
    case RWS_LOG1P: return log(1 + x);
    case RWS_EXPM1: return exp(x) - 1;
    case RWS_LGAMMA: return lgamma(x);
    case RWS_DIGAMMA: return slope_of_lgamma(x);
    case RWS_LOG1MEXP: return log(1 - exp(-x));
    }
    fail_msg("no twin for function %d", f);
    return 0;
}

/* Small words are denormal floats, which survive the conversion to double and back. */
float float_of(uint32_t word)
{
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

void along(const row *r, void (*twin)(const row *r), int first)
{
    static const double weight[] = {1 / 12.0, -8 / 12.0, 8 / 12.0, -1 / 12.0}, step[] = {-2, -1, 1, 2};
    const double        h = 1e-3;
    const int           n = r->n_in / 2;
    double              moved[RWS_OP_INPUTS][8], total = 0;
    for (int k = 0; k < 4; k++) {
        row there = *r;
        there.n_in = n;
        for (int s = 0; s < n; s++) {
            const int dim = r->in_dim[s] > r->in_dim[n + s] ? r->in_dim[s] : r->in_dim[n + s];
            for (int j = 0; j < dim; j++) moved[s][j] = at(r, s, j) + (s < first ? 0 : h * step[k] * at(r, n + s, j));
            there.in[s] = moved[s];
            there.in_dim[s] = dim;
        }
        twin(&there);
        total += weight[k] * r->out[0] / h;
    }
    r->out[0] = total;
}
