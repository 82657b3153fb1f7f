/* layers.c - the parameters of an automatic guide. All of them are of the group phi and have names that begin with
 * "phi.auto.". */
#include "guide/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { READER = 16, UP = 8, KEYS = 16 };

/* "phi.auto.<what>.<name>", or with a number where the name is too long. */
static const char *named(char out[static RWS_PARAM_NAME + 1], const char *what, const char *name, int number)
{
    if (number < 0 && strlen(name) < 50) snprintf(out, RWS_PARAM_NAME + 1, "phi.auto.%s.%s", what, name);
    else snprintf(out, RWS_PARAM_NAME + 1, "phi.auto.%s.%.40s.%d", what, name, number < 0 ? 0 : number);
    return out;
}

/* How many numbers the layers see of an item, or of a field. */
static int size_of(const rws_guide *g, int field)
{
    const rws_field *f = &g->setup->fields[field];
    const int        dim = f->most ? f->item : f->dim;
    return g->n_categories[field] ? g->n_categories[field] : dim;
}

static void declare_scale(rws_guide *g, rws_setup *s, int i)
{
    const rws_field *f = &s->fields[i];
    const int        dim = f->most ? f->item : f->dim;
    char             name[RWS_PARAM_NAME + 1];
    if (g->n_categories[i]) return;
    g->shift[i] = rws_setup_param(s, RWS_PHI, named(name, "shift", f->name, -1), 1, dim, RWS_ZERO);
    g->factor[i] = rws_setup_param(s, RWS_PHI, named(name, "factor", f->name, -1), 1, dim, RWS_ZERO);
    for (int k = 0; k < dim && rws_param_values(g->factor[i]); k++) rws_param_values(g->factor[i])[k] = 1;
}

static void declare_fields(rws_guide *g, rws_setup *s)
{
    int  total = 0;
    char name[RWS_PARAM_NAME + 1];
    for (int i = 0; i < s->n_fields; i++) {
        if (s->fields[i].label) continue;
        declare_scale(g, s, i);
        if (s->fields[i].most) {
            g->reader[i] = rws_setup_bidirectional(s, RWS_PHI, named(name, "read", s->fields[i].name, -1), RWS_GRU,
                                                   size_of(g, i), READER);
            total += 2 * READER;
        } else total += size_of(g, i);
    }
    if (total) g->encoder = rws_setup_linear(s, RWS_PHI, "phi.auto.data", total, g->sizes.width, RWS_UNIFORM);
}

int rws__guide_next_size(const rws_guide *g)
{
    int n = 0;
    for (int i = 0; i < g->setup->n_fields; i++) n += g->reader[i] ? 2 * READER : 0;
    return n;
}

/* What the cell sees of a value. */
static int value_size(const head *h)
{
    return h->n_choices > 2 && h->dim == 1 ? h->n_choices : h->dim;
}

/* A number for heads of one site. */
static int number_of(const rws_guide *g, const head *h)
{
    const bool like = h > g->heads && h[-1].site && strcmp(h[-1].site, h->site) == 0;
    return like ? (int)(h - g->heads) : -1;
}

static int sees(const rws_guide *g, const head *h)
{
    const bool knows = h->n_prior && h->n_prior <= MAX_WIDTH && !h->grows;
    return (g->encoder ? g->sizes.width : 0) + g->sizes.memory + rws__guide_next_size(g) + (knows ? h->n_prior : 0) +
           (h->most_visits > 1 ? (h->most_visits < MAX_VISITS ? h->most_visits : MAX_VISITS) : 0);
}

static void declare_head(rws_guide *g, rws_setup *s, head *h)
{
    char      name[RWS_PARAM_NAME + 1];
    const int number = number_of(g, h), n_out = rws__guide_outputs(h, g->sizes.components);
    if (g->cell)
        h->up = rws_setup_linear(s, RWS_PHI, named(name, "up", h->site, number), value_size(h), UP, RWS_UNIFORM);
    if (!n_out) return;
    h->hidden =
        rws_setup_linear(s, RWS_PHI, named(name, "hidden", h->site, number), sees(g, h), g->sizes.width, RWS_UNIFORM);
    h->out = rws_setup_linear(s, RWS_PHI, named(name, "out", h->site, number), g->sizes.width, n_out, RWS_ZERO);
    float *bias = rws_param_values(rws_layer_bias(h->out));
    if (bias) rws__guide_offsets(h, g->sizes.components, bias);
    if (h->kind != HEAD_GROWING) return;
    const int about = g->sizes.width + rws__guide_next_size(g);
    h->query = rws_setup_linear(s, RWS_PHI, named(name, "query", h->site, number), about, KEYS, RWS_UNIFORM);
    h->key = rws_setup_linear(s, RWS_PHI, named(name, "key", h->site, number), about, KEYS, RWS_UNIFORM);
}

void rws__guide_declare(rws_guide *g, rws_setup *s)
{
    const int before = s->params.n;
    if (g->most_choices < 2) g->sizes.memory = 0;
    declare_fields(g, s);
    if (g->sizes.memory) g->cell = rws_setup_gru(s, RWS_PHI, "phi.auto.cell", UP, g->sizes.memory);
    for (int i = 0; i < g->n_heads; i++) {
        head *h = &g->heads[i];
        h->kind = rws__setup_summed(s, h->site) ? HEAD_PRIOR : rws__guide_kind(h, g->sizes.components);
        declare_head(g, s, h);
    }
    head *unknown = &g->heads[g->n_heads];
    *unknown = (head){.site = "unknown site", .family = "", .width = 1, .dim = 1, .kind = HEAD_MOVED};
    declare_head(g, s, unknown);
    for (int i = before; i < s->params.n; i++)
        s->params.list[i]->unused = true; /* networks for what may never happen */
}

/* ---- the scale of the data */

/* Mean and standard deviation of number k of a field over the data, or of all items of a series. */
static void measure(const rws_field *f, int k, int n, const float *x, double *mean, double *sd)
{
    double count = 0, sum = 0, squares = 0;
    for (int d = 0; d < n; d++, x += f->dim) {
        const int items = f->most ? (int)x[0] : 1, step = f->most ? f->item : 0, first = f->most ? 1 : 0;
        for (int t = 0; t < items && t <= f->most; t++) {
            const double v = (double)x[first + t * step + k];
            count++;
            sum += v;
            squares += v * v;
        }
    }
    *mean = count > 0 ? sum / count : 0;
    *sd = count > 0 ? sqrt(fmax(0, squares / count - *mean * *mean)) : 0;
}

void rws__guide_scale(rws_guide *g, int n, const float *const *fields)
{
    for (int i = 0; g && i < g->setup->n_fields; i++) {
        float *shift = rws_param_values(g->shift[i]), *factor = rws_param_values(g->factor[i]);
        if (!shift || !factor) continue;
        const int dim = g->shift[i]->cols;
        for (int k = 0; k < dim; k++) {
            double mean, sd;
            measure(&g->setup->fields[i], k, n, fields[i], &mean, &sd);
            if (!isfinite(mean) || !isfinite(sd)) continue;
            shift[k] = (float)mean;
            factor[k] = sd > 1e-3 * fabs(mean) + 1e-6 ? (float)(1 / sd) : 1;
        }
    }
}
