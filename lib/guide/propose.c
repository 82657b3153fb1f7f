/* propose.c - from the output of a head to what is proposed at a site.
 *
 * A rule says, for each parameter of the family that is proposed, how a number y of the head moves the prior's:
 *
 *     m    p + y s, where s is the parameter after it: a location in units of its scale
 *     *    p exp(y): a number above 0
 *     +    p + y: logits, angles
 *     =    p
 *
 * At y = 0 the proposal is the prior, or what comes nearest to it in the family of the rule. */
#include "guide/internal.h"

#include "nn/layer.h"

#include <math.h>
#include <string.h>

enum { LARGEST = 7 /* exp(y) is within exp(-7) … exp(7) */, MOST_PARAMS = 4 };

struct rule {
    const char *family, *roles;
    const char *proposal;                                          /* NULL: the same family */
    void (*convert)(rws_path *path, const rws_var *p, rws_var *q); /* from the prior's parameters to the proposal's */
};

static void as_gamma(rws_path *path, const rws_var *p, rws_var *q)
{
    q[0] = rws_constant(path, 1);
    q[1] = p[0];
}

static void with_scale(rws_path *path, const rws_var *p, rws_var *q)
{
    q[0] = p[0];
    q[1] = rws_constant(path, 1);
}

static void from_zero(rws_path *path, const rws_var *p, rws_var *q)
{
    q[0] = q[2] = rws_constant(path, 0);
    q[1] = p[0];
    q[3] = rws_constant(path, INFINITY);
}

/* A normal of three times the width between the bounds is nearly even. */
static void even(rws_path *path, const rws_var *p, rws_var *q)
{
    q[0] = rws_affine(path, rws_add(path, p[0], p[1]), 0.5f, 0);
    q[1] = rws_affine(path, rws_sub(path, p[1], p[0]), 3, 0);
    q[2] = p[0];
    q[3] = p[1];
}

static const rule rules[] = {
    {"categorical", "+"},
    {"bernoulli", "+"},
    {"bernoulli vector", "+"},
    {"categoricals", "+"},
    {"multinomial", "=+"},
    {"concrete", "+="},
    {"normal", "m*"},
    {"laplace", "m*"},
    {"log-normal", "m*"},
    {"gumbel with a scale", "m*"},
    {"gumbel", "m*", "gumbel with a scale", with_scale},
    {"student t", "=m*"},
    {"gamma", "**"},
    {"inverse gamma", "**"},
    {"exponential", "**", "gamma", as_gamma},
    {"beta", "**"},
    {"half-normal", "m*==", "truncated normal", from_zero},
    {"truncated normal", "m*=="},
    {"uniform", "m*==", "truncated normal", even},
    {"von mises", "+*"},
    {"dirichlet", "*"},
    {"poisson", "*"},
    {"geometric", "+"},
    {"binomial", "=+"},
    {"negative binomial", "*+"},
};

/* An author's own family, or a mixture, may have the name of one of the library. */
const rule *rws__guide_rule(const rws_family *f)
{
    const rws_family *known = rws_family_find(f->name);
    if (!known || known->log_density != f->log_density) return NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].family, f->name) == 0) return &rules[i];
    return NULL;
}

/* ---- what a head makes */

static bool is_continuous(rws_support s)
{
    return s == RWS_SUPPORT_REAL || s == RWS_SUPPORT_POSITIVE || s == RWS_SUPPORT_UNIT || s == RWS_SUPPORT_INTERVAL ||
           s == RWS_SUPPORT_ANGLE || s == RWS_SUPPORT_SIMPLEX;
}

head_kind rws__guide_kind(const head *h, int components)
{
    const bool has_others =
        h->support == RWS_SUPPORT_REAL || h->support == RWS_SUPPORT_POSITIVE || h->support == RWS_SUPPORT_UNIT;
    if (!h->rule) return has_others ? HEAD_BESIDE : HEAD_PRIOR;
    if (h->grows) return HEAD_GROWING;
    if (h->support == RWS_SUPPORT_COUNT && h->dim == 1) return HEAD_TABLE;
    return components > 1 && is_continuous(h->support) ? HEAD_MIXED : HEAD_MOVED;
}

/* How many parameters a head moves. */
static int n_moved(const rule *r)
{
    int n = 0;
    for (const char *role = r ? r->roles : "+*"; *role; role++) n += *role != '=';
    return n;
}

static int others(int components)
{
    return components > 1 ? components - 1 : 1;
}

int rws__guide_outputs(const head *h, int components)
{
    const int moved = n_moved(h->rule) * h->width;
    switch (h->kind) {
    case HEAD_MOVED: return moved;
    case HEAD_MIXED: return components * (1 + moved);
    case HEAD_TABLE: return 2 + moved + SMALL_COUNTS;
    case HEAD_BESIDE: return 1 + others(components) * (1 + 2 * h->dim);
    case HEAD_GROWING: return 3;
    default: return 0;
    }
}

/* Between -1 and 1: what tells component c of n apart from the others at first. */
static float place(int c, int n)
{
    return ((float)c + 0.5f) / (float)n * 2 - 1;
}

static void offset_mixed(const head *h, int n, float *bias)
{
    const int moved = n_moved(h->rule) * h->width;
    for (int c = 0; c < n; c++) {
        float *at = bias + n + c * moved;
        int    n_factors = 0;
        for (const char *role = h->rule->roles; *role; role++) {
            const bool  factor = *role == '*', located = strchr(h->rule->roles, 'm') != NULL;
            const float by = factor && located ? 0 : factor && n_factors++ ? -0.5f : factor ? 0.5f : 1;
            for (int k = 0; k < h->width && *role != '='; k++) *at++ = by * place(c, n);
        }
    }
}

void rws__guide_offsets(const head *h, int components, float *bias)
{
    const int n = others(components);
    if (h->kind == HEAD_MIXED) offset_mixed(h, components, bias);
    if (h->kind == HEAD_TABLE || h->kind == HEAD_BESIDE) bias[0] = 2;
    for (int c = 0; c < n && h->kind == HEAD_BESIDE; c++)
        for (int k = 0; k < h->dim; k++) bias[1 + n + 2 * c * h->dim + k] = place(c, n);
}

/* ---- moved parameters */

static rws_var factor_of(rws_path *path, rws_var y)
{
    return rws_apply(path, RWS_EXP, rws_clip(path, y, -LARGEST, LARGEST));
}

/* The parameters q moved by numbers of y from number `at` on, `width` for each. */
static void move(rws_path *path, const rule *r, const rws_var *q, rws_var y, int at, int width, rws_var *out)
{
    for (int i = 0; r->roles[i]; i++) {
        out[i] = q[i];
        if (r->roles[i] == '=') continue;
        const rws_var by = rws_slice(path, y, at, width);
        at += width;
        if (r->roles[i] == '*') out[i] = rws_mul(path, q[i], factor_of(path, by));
        else out[i] = rws_add(path, q[i], r->roles[i] == 'm' ? rws_mul(path, q[i + 1], by) : by);
    }
}

static const rws_family *proposal_of(const rule *r, const rws_family *f)
{
    return r->proposal ? rws_family_find(r->proposal) : f;
}

static void convert(rws_path *path, const rule *r, const rws_family *f, const rws_var *p, rws_var *q)
{
    if (r->convert) r->convert(path, p, q);
    else memcpy(q, p, (size_t)f->n_params * sizeof *q);
}

static rws_var propose_moved(rws_path *path, const head *h, const char *site, const rws_family *f, const rws_var *q,
                             rws_var y)
{
    rws_var out[RWS_FAMILY_PARAMS];
    move(path, h->rule, q, y, 0, h->width, out);
    return rws__site_propose(path, site, proposal_of(h->rule, f), out);
}

static rws_var propose_mixed(rws_path *path, const rws_guide *g, const head *h, const char *site, const rws_family *f,
                             const rws_var *q, rws_var y)
{
    const int      n = g->sizes.components, moved = n_moved(h->rule) * h->width;
    rws_component *components = rws_alloc(path, (size_t)n * sizeof *components);
    for (int c = 0; c < n; c++) {
        rws_var *out = rws_alloc(path, MOST_PARAMS * sizeof *out);
        move(path, h->rule, q, y, n + c * moved, h->width, out);
        components[c] = (rws_component){proposal_of(h->rule, f), out};
    }
    return rws__mixture_propose(path, site, rws_slice(path, y, 0, n), components, n);
}

/* ---- counts */

static void table_prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    (void)f;
    p[0] = rws_log_softmax(path, p[0]);
}

static int table_length(rws_path *path, const rws_family *f, const rws_var *p)
{
    return (void)path, (void)f, (void)p, 1;
}

static rws_var table_draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    return (void)f, (void)stop, rws_draw_index(path, p[0]);
}

/* Numbers that are not in the table share an entry of -inf behind it. */
static rws_var table_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    const rws_var all[] = {p[0], rws_constant(path, -INFINITY)};
    (void)f;
    return rws_pick(path, rws_concat(path, all, 2), rws_clip(path, value, 0, SMALL_COUNTS));
}

static const rws_family table = {.name = "table of small counts",
                                 .support = RWS_SUPPORT_COUNT,
                                 .n_params = 1,
                                 .prepare = table_prepare,
                                 .length = table_length,
                                 .draw = table_draw,
                                 .log_density = table_density};

static rws_var propose_count(rws_path *path, const head *h, const char *site, const rws_family *f, const rws_var *q,
                             rws_var y)
{
    const int     moved = n_moved(h->rule) * h->width;
    rws_var       out[RWS_FAMILY_PARAMS];
    const rws_var entries = rws_slice(path, y, 2 + moved, SMALL_COUNTS);
    move(path, h->rule, q, y, 2, h->width, out);
    const rws_component components[] = {{f, out}, {&table, &entries}};
    return rws__mixture_propose(path, site, rws_slice(path, y, 0, 2), components, 2);
}

/* ---- families without a rule */

static const rws_family *family_of(rws_support s)
{
    return rws_family_find(s == RWS_SUPPORT_UNIT ? "beta" : s == RWS_SUPPORT_POSITIVE ? "log-normal" : "normal");
}

/* A mixture of the prior with others, of which a normal or log-normal has location y and scale exp(y'), a beta the shapes
 * exp(y) and exp(y'). */
static rws_var propose_beside(rws_path *path, const rws_guide *g, const head *h, const char *site, const rws_family *f,
                              const rws_var *params, rws_var y)
{
    const int      n = others(g->sizes.components), d = h->dim;
    rws_component *components = rws_alloc(path, (size_t)(n + 1) * sizeof *components);
    components[0] = (rws_component){f, params};
    for (int c = 0; c < n; c++) {
        rws_var      *out = rws_alloc(path, 2 * sizeof *out);
        const rws_var first = rws_slice(path, y, 1 + n + 2 * c * d, d);
        out[0] = h->support == RWS_SUPPORT_UNIT ? factor_of(path, first) : first;
        out[1] = factor_of(path, rws_slice(path, y, 1 + n + (2 * c + 1) * d, d));
        components[c + 1] = (rws_component){family_of(h->support), out};
    }
    return rws__mixture_propose(path, site, rws_slice(path, y, 0, n + 1), components, n + 1);
}

/* ---- categories whose number differs from visit to visit */

/* Every earlier visit of the site votes for the category that it chose, by how near its item is to the present one:
 *
 *     votes_k = - the sum over earlier visits j with z_j = k of |query - key_j|^2
 *
 * A category gets its prior's logit, y_0 times its votes, y_1 times their mean, and y_2 if nothing has chosen it yet. */
static rws_var tally(rws_path *path, const earlier *all, int n, rws_var query, rws_var *counts)
{
    rws_var votes = rws_zeros(path, n);
    *counts = votes;
    for (const earlier *j = all; j; j = j->before) {
        const rws_var chosen = rws__guide_onehot(path, rws__path_value(path, j->choice), n);
        const rws_var apart = rws_sub(path, query, rws__path_value(path, j->key));
        votes = rws_sub(path, votes, rws_mul(path, chosen, rws_dot(path, apart, apart)));
        *counts = rws_add(path, *counts, chosen);
    }
    return votes;
}

static rws_var grown(rws_path *path, const earlier *all, rws_var logits, rws_var query, rws_var y)
{
    const rws_var one = rws_constant(path, 1);
    rws_var       counts;
    const rws_var votes = tally(path, all, rws_dim(path, logits), query, &counts);
    const rws_var mean = rws_div(path, votes, rws_max(path, counts, one)), is_new = rws_greater(path, one, counts);
    const rws_var parts[] = {logits, rws_mul(path, votes, rws_slice(path, y, 0, 1)),
                             rws_mul(path, mean, rws_slice(path, y, 1, 1)),
                             rws_mul(path, is_new, rws_slice(path, y, 2, 1))};
    return rws_sum_many(path, parts, 4);
}

static rws_var propose_growing(rws_path *path, const rws_guide *g, const head *h, const char *site, const rws_family *f,
                               rws_var logits, rws_var y)
{
    head_state   *own = rws__guide_head_state(path, g, (int)(h - g->heads));
    rws_var       about[2];
    const int     n = rws__guide_about(path, g, about);
    const rws_var query = rws_linear_parts(path, h->query, about, n), key = rws_linear_parts(path, h->key, about, n);
    if (own->earlier) logits = grown(path, own->earlier, logits, query, y);
    const rws_var value = rws__site_propose(path, site, f, &logits);
    earlier      *now = rws_alloc(path, sizeof *now);
    *now = (earlier){own->earlier, value.id, key.id};
    own->earlier = now;
    return value;
}

/* ---- all of them */

/* A site that was not found has numbers for any family: a shift of locations, and a factor, by which logits are sharpened. */
static rws_var propose_unknown(rws_path *path, const char *site, const rws_family *f, const rws_var *params, rws_var y)
{
    const rule *r = rws__guide_rule(f);
    rws_var     q[RWS_FAMILY_PARAMS], by[] = {rws_slice(path, y, 0, 1), factor_of(path, rws_slice(path, y, 1, 1))};
    if (!r) return rws__site_propose(path, site, f, params);
    convert(path, r, f, params, q);
    for (int i = 0; r->roles[i]; i++) {
        if (r->roles[i] == '=') continue;
        if (r->roles[i] == 'm') q[i] = rws_add(path, q[i], rws_mul(path, q[i + 1], by[0]));
        else if (r->roles[i] == '*' || f->choices) q[i] = rws_mul(path, q[i], by[1]);
        else q[i] = rws_add(path, q[i], by[0]);
    }
    return rws__site_propose(path, site, proposal_of(r, f), q);
}

rws_var rws__guide_propose(rws_path *path, const rws_guide *g, const head *h, const char *site, const rws_family *f,
                           const rws_var *params)
{
    rws_var q[RWS_FAMILY_PARAMS];
    if (h->kind == HEAD_PRIOR) return rws__site_propose(path, site, f, params);
    const rws_var y = rws_linear(path, h->out, rws__guide_hidden(path, g, h, params));
    if (h == &g->heads[g->n_heads]) return propose_unknown(path, site, f, params, y);
    if (h->kind == HEAD_GROWING) return propose_growing(path, g, h, site, f, params[0], y);
    if (h->kind == HEAD_BESIDE) return propose_beside(path, g, h, site, f, params, y);
    convert(path, h->rule, f, params, q);
    if (h->kind == HEAD_TABLE) return propose_count(path, h, site, f, q, y);
    if (h->kind == HEAD_MIXED) return propose_mixed(path, g, h, site, f, q, y);
    return propose_moved(path, h, site, f, q, y);
}
