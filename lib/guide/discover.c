/* discover.c - the sites that a model visits, found by a pass in which everything is drawn from the model's own families.
 *
 * The program runs in the place of the guide, so that factors and simulations do not matter: a model that cannot be sampled
 * from has its sites found too. An observation without a draw of its own is zeros. */
#include "guide/internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { DATA = 16, PARTICLES = 256, FEW_WIDTHS = 2 };

typedef struct {
    rws_automatic automatic; /* first */
    rws_guide    *guide;
    rws_setup    *setup;
} explorer;

static int n_choices_of(rws_path *path, const rws_family *f, const rws_var *p)
{
    return f->choices ? f->choices(path, f, p) : 0;
}

static int total_of(rws_path *path, const rws_family *f, const rws_var *params)
{
    int total = 0;
    for (int i = 0; i < f->n_params; i++) total += rws_dim(path, params[i]);
    return total;
}

static head *find(rws_guide *g, const head *like)
{
    for (int i = 0; i < g->n_heads; i++) {
        head      *h = &g->heads[i];
        const bool same = strcmp(h->site, like->site) == 0 && strcmp(h->family, like->family) == 0;
        if (same && h->width == like->width && h->rule == like->rule) return h;
    }
    return NULL;
}

static const char *copy(rws_setup *s, const char *text)
{
    char *memory = rws_setup_alloc(s, strlen(text) + 1);
    return memory ? strcpy(memory, text) : "";
}

/* The entry of a site like this one, which may be new; NULL: there are too many. */
static head *enter(const explorer *e, const head *like)
{
    rws_guide *g = e->guide;
    head      *h = find(g, like);
    if (!h && g->n_heads < MAX_HEADS && like->width <= MAX_WIDTH && strlen(like->site) < 200) {
        h = &g->heads[g->n_heads++];
        *h = *like;
        h->site = copy(e->setup, like->site);
        h->family = copy(e->setup, like->family);
    }
    return h;
}

static void note_latent(rws_path *path, const explorer *e, const char *site, const rws_family *f, const rws_var *params,
                        const rws_var *p)
{
    memory    *m = rws__path_memory(path);
    const head like = {.site = site,
                       .family = f->name,
                       .rule = rws__guide_rule(f),
                       .support = f->support,
                       .width = f->n_params ? rws__dist_longest(path, params, f->n_params) : 1,
                       .dim = rws__family_length(path, f, p),
                       .n_prior = total_of(path, f, params),
                       .n_choices = n_choices_of(path, f, p)};
    head      *h = enter(e, &like);
    int       *visits = h ? &rws__guide_head_state(path, e->guide, (int)(h - e->guide->heads))->visits : NULL;
    if (h && ++*visits > h->most_visits) h->most_visits = *visits;
    if (++m->n_choices > e->guide->most_choices) e->guide->most_choices = m->n_choices;
}

static rws_var explore(rws_path *path, const rws_automatic *a, const char *site, const rws_family *f,
                       const rws_var *params, const rws_var *p)
{
    const explorer *e = (const explorer *)a;
    const int       field = rws__guide_field_of(e->guide, site), dim = rws__family_length(path, f, p);
    if (field < 0) note_latent(path, e, site, f, params, p);
    else if (f->support == RWS_SUPPORT_INDEX && n_choices_of(path, f, p) > 2 && dim == 1)
        e->guide->n_categories[field] = n_choices_of(path, f, p);
    return f->draw ? rws__var_stop(path, f->draw(path, f, p, true)) : rws_zeros(path, dim);
}

static void program(rws_path *path, void *context)
{
    const rws_pass *pass = rws__path_pass(path);
    (void)context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    rws__path_acts(path, true);
    pass->model->model(path, pass->state);
    rws__path_acts(path, false);
    rws__path_side(path, RWS_SIDE_NONE);
    rws__path_output(path, 0, rws_constant(path, 0));
}

/* Makes one entry of the n entries of a site, which are choices among different numbers of categories. */
static void merge(rws_guide *g, head *first, int n)
{
    first->grows = true;
    for (int i = 1; i < n; i++) {
        if (first[i].width > first->width) first->width = first->n_choices = first[i].width;
        first->most_visits += first[i].most_visits;
    }
    memmove(first + 1, first + n, (size_t)(g->heads + g->n_heads - (first + n)) * sizeof *first);
    g->n_heads -= n - 1;
}

/* A choice among a few numbers of categories has a head for each of them. */
static void find_growing(rws_guide *g)
{
    for (head *h = g->heads; h < g->heads + g->n_heads; h++) {
        int n = 1;
        while (h + n < g->heads + g->n_heads && strcmp(h[n].site, h->site) == 0 && strcmp(h[n].family, h->family) == 0)
            n++;
        if (n > FEW_WIDTHS && h->support == RWS_SUPPORT_INDEX && h->dim == 1) merge(g, h, n);
    }
}

/* Zeros, except for inputs, which a program may loop by: these are of training data. */
static rws_status make_data(rws_setup *s, const rws_model *model, const void *state, float **fields, rws_error *err)
{
    rws_random random = rws__random_new(rws__key_for(s->seed, 0, RWS_KEY_INIT, RWS_INIT_GUIDE_INPUTS), 0);
    bool       inputs = false;
    for (int i = 0; i < s->n_fields; i++) {
        fields[i] = rws_setup_alloc(s, DATA * (size_t)s->fields[i].dim * sizeof(float));
        inputs |= s->fields[i].input;
        if (!fields[i]) return RWS_NO_MEMORY;
    }
    if (!inputs) return RWS_OK;
    RWS_TRY(rws__setup_make_data(s, model, state, RWS_TRAIN, 0, DATA, &random, fields, err));
    for (int i = 0; i < s->n_fields; i++)
        if (!s->fields[i].input) memset(fields[i], 0, DATA * (size_t)s->fields[i].dim * sizeof(float));
    return RWS_OK;
}

static rws_status run(rws_engine *e, rws_setup *s, const rws_model *model, const void *state, rws_error *err)
{
    float *fields[RWS_FIELDS];
    RWS_TRY(make_data(s, model, state, fields, err));
    const rws_pass pass = {.program = program,
                           .model = model,
                           .state = state,
                           .mode = RWS_COMPUTE,
                           .n_data = DATA,
                           .n_particles = PARTICLES / DATA,
                           .fields = (const float *const *)fields,
                           .key = rws__key_for(s->seed, 0, RWS_KEY_INIT, RWS_INIT_DISCOVERY)};
    return rws__engine_forward(e, &pass, err);
}

static int by_name(const void *a, const void *b)
{
    const head *x = a, *y = b;
    const int   order = strcmp(x->site, y->site), then = strcmp(x->family, y->family);
    return order ? order : then ? then : (x->width > y->width) - (x->width < y->width);
}

/* Numbers that break in this pass may be fine with data, so that only the sites found so far count then. */
rws_status rws__guide_discover(rws_guide *g, rws_setup *s, const void *state, const rws_limits *limits, rws_error *err)
{
    explorer    x = {{.visit = explore, .bytes = rws__guide_bytes(g, MAX_HEADS)}, g, s};
    rws_engine *e = rws__params_pack(&s->params) ? rws__engine_new(&s->params, s->fields, s->n_fields, limits) : NULL;
    rws_status  status = e ? RWS_OK : rws_no_memory(err, "an engine");
    if (e) {
        rws__engine_host(e, g->model->host);
        rws__engine_automatic(e, &x.automatic);
        status = run(e, s, g->model, state, err);
    }
    rws__engine_free(e);
    if (!rws__params_unpack(&s->params)) return rws_no_memory(err, "the parameters");
    qsort(g->heads, (size_t)g->n_heads, sizeof *g->heads, by_name);
    find_growing(g);
    return status == RWS_BROKEN ? RWS_OK : status;
}
