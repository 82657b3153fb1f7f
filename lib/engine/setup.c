#include "engine/setup.h"

#include "base/error.h"
#include "base/nearest.h"
#include "base/vecmath.h"

#include <glib.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws__setup_release(rws_setup *s)
{
    for (const rws_owned *k = s->kept; k; k = k->next) k->release(k->thing);
    s->kept = NULL;
    rws__params_release(&s->params);
    rws__arena_free(&s->memory);
}

bool rws__setup_own(rws_setup *s, void *thing, void (*release)(void *thing))
{
    rws_owned *k = RWS_TRY_NEW(&s->memory, rws_owned, 1);
    if (!k) return false;
    *k = (rws_owned){s->kept, thing, release};
    s->kept = k;
    return true;
}

/* The first failure counts; the model continues declaring, and the run never starts. */
static void declare_failed(rws_setup *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void declare_failed(rws_setup *s, const char *format, ...)
{
    rws_error what;
    va_list   args;
    va_start(args, format);
    rws__fail_v(&what, RWS_BAD_INPUT, format, args);
    va_end(args);
    if (s->status != RWS_OK) return;
    if (s->model) s->status = rws_fail(&s->error, RWS_BAD_INPUT, "Model %s: %s", s->model, what.text);
    else s->status = rws_fail(&s->error, RWS_BAD_INPUT, "%s", what.text);
}

const char *rws__setup_given(const rws_setup *s, const char *name)
{
    for (int i = 0; i < s->n_given; i++)
        if (strcmp(s->given[i].setting->name, name) == 0) return s->given[i].value;
    return NULL;
}

const char *rws_setup_text(rws_setup *s, const char *name)
{
    const char *value = name ? rws__setup_given(s, name) : NULL;
    if (value) return value;
    rws_nearest near = rws__nearest_to(name);
    for (int i = 0; i < s->n_given; i++) rws__nearest_try(&near, s->given[i].setting->name);
    declare_failed(s, "It asks for a setting \"%s\", which is not in its table%s.", name ? name : "NULL",
                   rws__nearest_hint(&near).text);
    return "";
}

double rws_setup_number(rws_setup *s, const char *name)
{
    return g_ascii_strtod(rws_setup_text(s, name), NULL);
}

int rws_setup_int(rws_setup *s, const char *name)
{
    return (int)lrint(rws_setup_number(s, name));
}

static void no_memory(void *setup)
{
    rws_setup *s = setup;
    if (s->status == RWS_OK) s->status = rws_no_memory(&s->error, "what the model declares");
}

void *rws_setup_alloc(rws_setup *s, size_t bytes)
{
    s->memory.no_memory = no_memory;
    s->memory.context = s;
    return rws__arena_zero(&s->memory, bytes);
}

/* Without memory the copy is an empty text, which does no harm: the setup has failed and the run never starts. */
static const char *copy(rws_setup *s, const char *text)
{
    char *memory = rws_setup_alloc(s, strlen(text) + 1);
    return memory ? strcpy(memory, text) : "";
}

const char *rws_setup_path(rws_setup *s, const char *name)
{
    const char *text = rws_setup_text(s, name);
    char       *path = *text ? realpath(text, NULL) : NULL;
    if (!path) return text;
    for (int i = 0; i < s->n_given; i++)
        if (strcmp(s->given[i].setting->name, name) == 0) s->given[i].value = copy(s, path);
    free(path);
    return rws_setup_text(s, name);
}

static void declare_field(rws_setup *s, const char *name, int dim, bool label)
{
    const char *what = label ? "label" : "field";
    if (!name || !*name) {
        declare_failed(s, "A %s is declared without a name.", what);
        return;
    }
    for (int i = 0; i < s->n_fields; i++)
        if (strcmp(s->fields[i].name, name) == 0) {
            declare_failed(s, "The %s \"%s\" is declared twice.", what, name);
            return;
        }
    if (dim < 1) declare_failed(s, "The %s \"%s\" has %d numbers; it must have at least one.", what, name, dim);
    else if (s->n_fields == RWS_FIELDS)
        declare_failed(s, "The %s \"%s\" is one too many: there may be %d fields and labels.", what, name, RWS_FIELDS);
    else s->fields[s->n_fields++] = (rws_field){.name = copy(s, name), .dim = dim, .label = label};
}

static void declare_series(rws_setup *s, const char *name, int dim, int most, bool label)
{
    const int n = s->n_fields;
    if (!name || !*name) {
        declare_failed(s, "A series is declared without a name.");
        return;
    }
    if ((int64_t)dim * most >= INT32_MAX) {
        declare_failed(s, "The series \"%s\" cannot have %d items of %d numbers.", name, most, dim);
        return;
    }
    if (dim < 1 || most < 1) {
        declare_failed(s, "The series \"%s\" has %d items of %d numbers; it must have at least one of one.", name, most,
                       dim);
        return;
    }
    if (most > RWS_MAX_WHOLE) {
        declare_failed(s, "The series \"%s\" has up to %d items; it may have %d, since a float holds their number.",
                       name, most, RWS_MAX_WHOLE);
        return;
    }
    declare_field(s, name, 1 + dim * most, label);
    if (s->n_fields > n) s->fields[n].item = dim, s->fields[n].most = most;
}

void rws_setup_series(rws_setup *s, const char *name, int dim, int most)
{
    declare_series(s, name, dim, most, false);
}

void rws_setup_field(rws_setup *s, const char *name, int dim)
{
    declare_field(s, name, dim, false);
}

bool rws__setup_has_inputs(const rws_setup *s)
{
    for (int i = 0; i < s->n_fields; i++)
        if (s->fields[i].input) return true;
    return false;
}

void rws_setup_is_input(rws_setup *s, const char *name)
{
    int f = 0;
    while (name && f < s->n_fields && strcmp(s->fields[f].name, name) != 0) f++;
    if (!name || f == s->n_fields)
        declare_failed(s, "There is no field \"%s\" to be an input; it is declared first.", name ? name : "NULL");
    else if (s->fields[f].label) declare_failed(s, "\"%s\" is a label; a field can be an input.", name);
    else s->fields[f].input = true;
}

void rws_setup_input(rws_setup *s, const char *name, int dim)
{
    const int n = s->n_fields;
    declare_field(s, name, dim, false);
    if (s->n_fields > n) s->fields[n].input = true;
}

void rws_setup_label(rws_setup *s, const char *name, int dim)
{
    declare_field(s, name, dim, true);
}

void rws_setup_label_series(rws_setup *s, const char *name, int dim, int most)
{
    declare_series(s, name, dim, most, true);
}

/* The name of another label than field f that is the value of the site; NULL: there is none. */
static const char *other_label(const rws_setup *s, int f, const char *site)
{
    for (int i = 0; i < s->n_fields; i++)
        if (i != f && s->label_site[i] && strcmp(s->label_site[i], site) == 0) return s->fields[i].name;
    return NULL;
}

void rws_setup_label_site(rws_setup *s, const char *label, const char *site)
{
    const char *name = label ? label : "NULL";
    int         f = 0;
    while (f < s->n_fields && strcmp(s->fields[f].name, name) != 0) f++;
    if (!site || !*site) declare_failed(s, "The label \"%s\" is given no site that it is the value of.", name);
    else if (f == s->n_fields)
        declare_failed(s, "There is no label \"%s\" to be the value of site \"%s\".", name, site);
    else if (!s->fields[f].label)
        declare_failed(s, "\"%s\" is a field; only a label can be the value of site \"%s\".", name, site);
    else if (strcmp(site, name) == 0) declare_failed(s, "The label \"%s\" must have another name than its site.", name);
    else if (other_label(s, f, site))
        declare_failed(s, "Labels \"%s\" and \"%s\" are both the value of site \"%s\"; a site has one label.",
                       other_label(s, f, site), name, site);
    else s->label_site[f] = copy(s, site);
}

void rws_setup_gradient(rws_setup *s, const char *site, rws_gradient how)
{
    if (!site || !*site || how < RWS_REPARAMETERISED || how > RWS_SUMMED) {
        declare_failed(s, "rws_setup_gradient takes a site and RWS_REPARAMETERISED, RWS_SCORE or RWS_SUMMED.");
        return;
    }
    rws_site_gradient *longer = rws_setup_alloc(s, (size_t)(s->n_gradients + 1) * sizeof *longer);
    if (!longer) return;
    for (int i = 0; i < s->n_gradients; i++) longer[i] = s->gradients[i];
    longer[s->n_gradients++] = (rws_site_gradient){copy(s, site), how};
    s->gradients = longer;
}

const char *rws__setup_summed(const rws_setup *s, const char *site)
{
    for (int i = s->n_gradients; i-- > 0;) {
        bool later = site && strcmp(s->gradients[i].site, site) != 0;
        for (int k = i + 1; k < s->n_gradients; k++) later |= strcmp(s->gradients[k].site, s->gradients[i].site) == 0;
        if (!later && s->gradients[i].how == RWS_SUMMED) return s->gradients[i].site;
    }
    return NULL;
}

/* The value of a parameter that stands for x. Probabilities of 0 and 1 become numbers that a float has. */
static float unscaled(rws_scale scale, double x)
{
    const double value = scale == RWS_LOGARITHMS || scale == RWS_LOGITS ? log(x)
                         : scale == RWS_LOG_ODDS                        ? log(x) - log1p(-x)
                                                                        : x;
    return (float)fmin(fmax(value, -1e30), 1e30);
}

void rws_setup_unused(rws_setup *s, const char *name)
{
    const size_t n = name ? strlen(name) : 0;
    bool         found = false;
    for (int i = 0; i < s->params.n && n; i++) {
        rws_param *p = s->params.list[i];
        if (strncmp(p->name, name, n) != 0 || (p->name[n] && p->name[n] != '.')) continue;
        found = p->unused = true;
    }
    if (!found) declare_failed(s, "There is no parameter \"%s\" that may be unused.", name ? name : "NULL");
}

void rws_setup_truth_sized(rws_setup *s, const rws_param *p, rws_scale scale, const double *numbers, size_t bytes)
{
    static const char *const what[] = {[RWS_AS_IS] = "a finite number",
                                       [RWS_LOGARITHMS] = "a number above 0",
                                       [RWS_LOG_ODDS] = "a probability",
                                       [RWS_LOGITS] = "a probability"};
    if (s->status != RWS_OK) return;
    if (!p || !numbers || (int)scale < RWS_AS_IS || scale > RWS_LOGITS) {
        declare_failed(s, "rws_setup_truth takes a parameter, its scale and its numbers.");
        return;
    }
    const size_t n = rws__param_size(p);
    if (bytes < n * sizeof *numbers) {
        declare_failed(s, "The truth of parameter \"%s\" takes %zu numbers, and the array has %zu.", p->name, n,
                       bytes / sizeof *numbers);
        return;
    }
    rws_truth *longer = rws_setup_alloc(s, (size_t)(s->n_truths + 1) * sizeof *longer);
    double    *kept = rws_setup_alloc(s, n * sizeof *kept);
    float     *values = rws_setup_alloc(s, n * sizeof *values);
    if (!longer || !kept || !values) return;
    for (size_t i = 0; i < n; i++) {
        kept[i] = numbers[i];
        values[i] = unscaled(scale, numbers[i]);
        if (scale == RWS_AS_IS ? isfinite(kept[i])
                               : kept[i] >= 0 && (scale == RWS_LOGARITHMS ? kept[i] > 0 : kept[i] <= 1))
            continue;
        declare_failed(s, "The truth of parameter \"%s\" has %g as number %zu, which is not %s.", p->name, numbers[i],
                       i, what[scale]);
        return;
    }
    for (int row = 0; scale == RWS_LOGITS && row < p->rows; row++) {
        double total = 0;
        for (int i = 0; i < p->cols; i++) total += kept[(size_t)row * (size_t)p->cols + (size_t)i];
        if (fabs(total - 1) <= 1e-4) continue;
        declare_failed(s, "The truth of parameter \"%s\" has probabilities in row %d that add up to %g, not to 1.",
                       p->name, row, total);
        return;
    }
    for (int i = 0; i < s->n_truths; i++) longer[i] = s->truths[i];
    longer[s->n_truths++] = (rws_truth){p, scale, kept, values};
    s->truths = longer;
}

const rws_model *rws_setup_model(const rws_setup *s)
{
    return s->owner;
}

void rws_setup_relaxed(rws_setup *s, const char *site, int n_categories)
{
    if (!site || !*site || n_categories < 2) {
        declare_failed(s, "Site \"%s\" with %d categories cannot be relaxed: it needs a name and at least two.",
                       site ? site : "NULL", n_categories);
        return;
    }
    s->relaxed_site = copy(s, site);
    s->relaxed_categories = n_categories;
}

/* Sets the first values. Every parameter has a stream of its own, by its place in the declaration. n_in 0 stands for the
 * number of columns. */
static void start(rws_setup *s, rws_param *p, rws_init init, int n_in)
{
    rws_random  g = rws__random_new(rws__key_for(s->seed, 0, RWS_KEY_INIT, RWS_INIT_PARAMETERS), (uint32_t)s->params.n);
    const float scale = 1 / sqrtf((float)(n_in ? n_in : p->cols));
    for (size_t i = 0; i < rws__param_size(p); i++) {
        double x = 0;
        if (init == RWS_UNIFORM) x = 2 * rws_random_uniform(&g) - 1;
        if (init == RWS_TRUNCATED) do {
                x = rws_random_normal(&g);
            } while (fabs(x) > 2);
        p->value[i] = scale * (float)x;
    }
}

/* What a declaration that failed returns: a parameter of no run, with as many numbers as were asked for if that is
 * possible. */
static rws_param *no_param(rws_setup *s, int rows, int cols)
{
    static _Thread_local rws_param nothing;
    const bool                     possible = rows > 0 && cols > 0 && (size_t)rows * (size_t)cols <= INT32_MAX;
    rws_param                     *p = possible ? rws_setup_alloc(s, sizeof *p) : NULL;
    if (!p) {
        nothing = (rws_param){.rows = 1, .cols = 1};
        return &nothing;
    }
    p->value = rws_setup_alloc(s, (size_t)rows * (size_t)cols * sizeof *p->value);
    p->rows = rows;
    p->cols = cols;
    return p;
}

static bool is_declared(const rws_setup *s, const char *name)
{
    for (int i = 0; i < s->params.n; i++)
        if (strcmp(s->params.list[i]->name, name) == 0) return true;
    return false;
}

rws_param *rws__setup_param_scaled(rws_setup *s, rws_group group, const char *name, int rows, int cols, rws_init init,
                                   int n_in)
{
    if (!name || !*name || strlen(name) > RWS_PARAM_NAME)
        declare_failed(s, "The parameter \"%.100s\" needs a name of 1 to %d bytes.", name ? name : "", RWS_PARAM_NAME);
    else if (rows < 1 || cols < 1 || (size_t)rows * (size_t)cols > INT32_MAX)
        declare_failed(s, "The parameter \"%s\" cannot have %d x %d numbers.", name, rows, cols);
    else if ((int)group < 0 || group >= RWS_GROUPS)
        declare_failed(s, "The parameter \"%s\" belongs to no group (%d).", name, (int)group);
    else if (is_declared(s, name)) declare_failed(s, "Two parameters have the name \"%s\".", name);
    if (s->status != RWS_OK) return no_param(s, rows, cols);
    rws_param *p = rws__params_add(&s->params, group, name, rows, cols);
    if (!p) {
        no_memory(s);
        return no_param(s, 0, 0);
    }
    start(s, p, init, n_in);
    return p;
}

rws_param *rws_setup_param(rws_setup *s, rws_group group, const char *name, int rows, int cols, rws_init init)
{
    return rws__setup_param_scaled(s, group, name, rows, cols, init, 0);
}

/* ---- data */

#define UNFILLED 0x7fc0da7au /* a NaN that no computation returns */

static bool is_unfilled(float x)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word == UNFILLED;
}

/* The sum of x * 0 is 0 if every x is finite: then none is looked at alone. */
static bool has_unfilled(const float *x, size_t n)
{
    float zero = 0;
#pragma omp simd reduction(+ : zero)
    for (size_t i = 0; i < n; i++) zero += x[i] * 0;
    for (size_t i = 0; zero != 0 && i < n; i++)
        if (is_unfilled(x[i])) return true;
    return false;
}

static rws_status expect_filled(const rws_field *f, uint64_t first, int n, float *x, rws_error *err)
{
    const size_t dim = (size_t)f->dim;
    if (!has_unfilled(x, (size_t)n * dim)) return RWS_OK;
    for (size_t i = 0; i < (size_t)n * dim; i++) {
        const float length = x[i / dim * dim];
        if (!is_unfilled(x[i])) continue;
        if (f->most && !is_unfilled(length) && (float)(i % dim) > length * (float)f->item) x[i] = 0;
        else
            return rws_fail(err, RWS_BAD_INPUT,
                            "The model's function `data` left number %zu of field \"%s\" of datum %llu as it was; it "
                            "fills %d numbers of this field for each datum.",
                            i % dim, f->name, (unsigned long long)(first + i / dim), f->dim);
    }
    return RWS_OK;
}

rws_status rws__setup_make_data(const rws_setup *s, const rws_model *m, const void *state, rws_split split,
                                uint64_t first, int n, rws_random *random, float *const *fields, rws_error *err)
{
    float          mark;
    const uint32_t word = UNFILLED;
    memcpy(&mark, &word, sizeof mark);
    for (int f = 0; f < s->n_fields; f++)
        for (size_t i = 0; i < (size_t)n * (size_t)s->fields[f].dim; i++) fields[f][i] = mark;
    RWS_TRY(RWS_CALL_MODEL(m, data, err, state, split, first, n, random, fields));
    for (int f = 0; f < s->n_fields; f++) RWS_TRY(expect_filled(&s->fields[f], first, n, fields[f], err));
    return RWS_OK;
}
