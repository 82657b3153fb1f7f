/* mixture.c - a value from one of n components. The component is not a choice: the log-density is a sum over all components.
 *
 *     log p(x) = log of the sum over c of w_c p_c(x)
 *
 * A draw first draws the index of a component. If all components are of one family, the parameters of that component are
 * picked, and one value is drawn; otherwise every component draws a value, and the value of that component is picked. The
 * value counts as a constant for every method, since the index cannot be differentiated.
 */
#include "base/error.h"
#include "dist/dist.h"

#include <string.h>

typedef struct {
    const rws_component *components;
    int                  n;
    bool                 alike;           /* all components are of one family */
    rws_var (*params)[RWS_FAMILY_PARAMS]; /* prepared, of each component */
} mixture;

static const mixture *mixture_of(rws_path *path, const rws_family *f)
{
    if (!f->context) rws__path_mistake(path, "a mixture was visited without components; rws_mixture takes them.");
    return f->context;
}

static void prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    const mixture *m = mixture_of(path, f);
    if (rws_dim(path, p[0]) != m->n)
        rws__path_mistake(path, "rws_mixture was given %d logits for %d components.", rws_dim(path, p[0]), m->n);
    p[0] = rws_log_softmax(path, p[0]);
    for (int c = 0; c < m->n; c++) {
        const rws_family *one = m->components[c].family;
        for (int k = 0; k < one->n_params; k++) m->params[c][k] = m->components[c].params[k];
        if (one->prepare) one->prepare(path, one, m->params[c]);
    }
}

static int length(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)p;
    const mixture *m = mixture_of(path, f);
    const int      n = rws__family_length(path, m->components[0].family, m->params[0]);
    for (int c = 1; c < m->n; c++) {
        const int other = rws__family_length(path, m->components[c].family, m->params[c]);
        if (other != n)
            rws__path_mistake(path, "components 0 and %d of a mixture have values of %d and %d numbers.", c, n, other);
    }
    return n;
}

static int choices(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)p;
    const mixture    *m = mixture_of(path, f);
    const rws_family *one = m->components[0].family;
    const int         n = one->choices(path, one, m->params[0]);
    for (int c = 1; c < m->n; c++)
        if (one->choices(path, one, m->params[c]) != n)
            rws__path_mistake(path, "components 0 and %d of a mixture choose among %d and %d.", c, n,
                              one->choices(path, one, m->params[c]));
    return n;
}

static int size(rws_path *path, const rws_family *f, const rws_var *p)
{
    const mixture    *m = mixture_of(path, f);
    const rws_family *one = m->components[0].family;
    if (!m->alike) return length(path, f, p);
    return one->size      ? one->size(path, one, m->params[0])
           : one->choices ? one->choices(path, one, m->params[0])
                          : length(path, f, p);
}

/* Parameter k of the component `index`. If a component has one number there and another component has more, that number is
 * repeated. */
static rws_var picked(rws_path *path, const mixture *m, int k, rws_var index)
{
    rws_var *rows = rws_alloc(path, (size_t)m->n * sizeof *rows);
    int      n = 1;
    for (int c = 0; c < m->n; c++) n = rws_dim(path, m->params[c][k]) > n ? rws_dim(path, m->params[c][k]) : n;
    for (int c = 0; c < m->n; c++) {
        rows[c] = m->params[c][k];
        if (rws_dim(path, rows[c]) != n) {
            const float *zeros = rws_alloc(path, (size_t)n * sizeof *zeros);
            rows[c] = rws_add(path, rows[c], rws_constants(path, zeros, n));
        }
    }
    return m->n == 1 ? rows[0] : rws_row(path, rws_concat(path, rows, m->n), n, index);
}

/* Where the components have bounds: the lowest and the highest of them. */
static void bounds(rws_path *path, const rws_family *f, const rws_var *p, rws_var bound[2])
{
    (void)p;
    const mixture *m = mixture_of(path, f);
    for (int c = 0; c < m->n; c++) {
        const rws_family *one = m->components[c].family;
        const rws_values  v =
            rws__family_values(path, one, m->params[c], one->choices ? one->choices(path, one, m->params[c]) : 0);
        const rws_var low = rws__values_bound(path, &v, false), high = rws__values_bound(path, &v, true);
        bound[0] = c ? rws_min(path, bound[0], low) : low;
        bound[1] = c ? rws_max(path, bound[1], high) : high;
    }
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)stop;
    const mixture    *m = mixture_of(path, f);
    const rws_family *one = m->components[0].family;
    if (rws__path_proposal(path)->how >= RWS_GUMBEL) /* the control variates know nothing of the index */
        rws__path_mistake(path,
                          "a mixture cannot be relaxed; this method needs a guide that draws a plain categorical.");
    const rws_var index = rws_draw_index(path, p[0]);
    if (m->alike) {
        rws_var params[RWS_FAMILY_PARAMS];
        for (int k = 0; k < one->n_params; k++) params[k] = picked(path, m, k, index);
        return one->draw(path, one, params, true);
    }
    rws_var  *values = rws_alloc(path, (size_t)m->n * sizeof *values);
    const int n = length(path, f, p);
    for (int c = 0; c < m->n; c++) {
        const rws_family *other = m->components[c].family;
        values[c] = other->draw(path, other, m->params[c], true);
        if (rws_dim(path, values[c]) != n)
            rws__path_mistake(path, "the family \"%s\" drew a value of %d numbers, but its length is %d.", other->name,
                              rws_dim(path, values[c]), n);
    }
    return rws_row(path, rws_concat(path, values, m->n), n, index);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    const mixture *m = mixture_of(path, f);
    rws_var       *terms = rws_alloc(path, (size_t)m->n * sizeof *terms);
    for (int c = 0; c < m->n; c++) {
        const rws_family *one = m->components[c].family;
        terms[c] = one->log_density(path, one, value, m->params[c]);
        if (rws_dim(path, terms[c]) != 1)
            rws__path_mistake(path, "the log-density of the family \"%s\" has %d numbers, not one.", one->name,
                              rws_dim(path, terms[c]));
    }
    if (m->n == 1) return terms[0];
    return rws_log_sum_exp(path, rws_add(path, p[0], rws_concat(path, terms, m->n)));
}

const rws_family rws_mixture_family = {
    .name = "mixture",
    .help = "one of several components of any families, which is not a choice, by logits",
    .n_params = 1,
    .prepare = prepare,
    .length = length,
    .size = size,
    .draw = draw,
    .log_density = log_density,
};

typedef rws_var visitor(rws_path *path, const char *site, const rws_family *f, const rws_var *params);

static rws_var mix(rws_path *path, const char *site, rws_var logits, const rws_component *components, int n,
                   visitor *visit)
{
    if (n < 1 || !components)
        rws__path_mistake(path, "rws_mixture takes at least one component, not %d.", components ? n : 0);
    mixture    m = {components, n, true, rws_alloc(path, (size_t)n * sizeof *m.params)};
    rws_family f = rws_mixture_family;
    bool       drawn = true;
    f.context = &m;
    f.support = components[0].family ? components[0].family->support : RWS_SUPPORT_REAL;
    for (int c = 0; c < n; c++) {
        const rws_family *one = components[c].family;
        rws__family_check(path, one, "rws_mixture");
        if (one->n_params && !components[c].params)
            rws__path_mistake(path, "component %d of a mixture was given no parameters (NULL).", c);
        m.alike &= one == components[0].family;
        drawn &= one->draw != NULL;
        if (one->bounds || one->support != f.support) f.bounds = bounds;
        f.support = rws__support_of_both(f.support, one->support);
    }
    if (m.alike) f.name = components[0].family->name;
    if (m.alike && components[0].family->choices) f.choices = choices;
    if (!drawn) f.draw = NULL;
    return visit(path, site, &f, &logits);
}

rws_var rws_mixture(rws_path *path, const char *site, rws_var logits, const rws_component *components, int n)
{
    rws_var value;
    if (rws__replayed(path, &value)) return value;
    return rws__returns(path, mix(path, site, logits, components, n, rws__site_work));
}

rws_var rws__mixture_propose(rws_path *path, const char *site, rws_var logits, const rws_component *components, int n)
{
    return mix(path, site, logits, components, n, rws__site_propose);
}
