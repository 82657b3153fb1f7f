/* site.c - what happens at a site: find the value or draw it, then add its log-density where one is wanted. */
#include "dist/dist.h"

const rws_family *const rws_families[] = {
    &rws_categorical_family, &rws_bernoulli_family, &rws_bernoulli_vector_family, &rws_normal_family,
    &rws_uniform_family,     &rws_gumbel_family,    &rws_concrete_family,         NULL,
};

int rws_dist_widest(rws_path *path, const rws_var *p)
{
    const int a = rws_dim(path, p[0]), b = rws_dim(path, p[1]);
    if (a != b && a != 1 && b != 1) rws_give_up(path, "A distribution has parameters of %d and %d numbers.", a, b);
    return a > b ? a : b;
}

static bool guide_draws(const rws_pass *pass, bool found)
{
    return !found && pass->mode == RWS_WAKE;
}

static int n_values(rws_path *path, const rws_family *f, const rws_var *p)
{
    return f->choices ? f->choices(path, p) : f->binary ? 2 : 0;
}

rws_var rws_site_visit(rws_path *path, const char *site, const rws_family *f, rws_var a, rws_var b)
{
    rws_var value;
    if (rws_replayed(path, &value)) return value;
    const rws_pass *pass = rws_path_pass(path);
    rws_var         p[RWS_DIST_PARAMS] = {a, b}, log_defended = {0};
    if (f->prepare) f->prepare(path, p);
    const int  size = f->size(path, p), dim = f->dim(path, p);
    const bool found = rws_site_find(path, site, f->name, size, dim, &value);
    const bool defended = guide_draws(pass, found) && pass->proposal == RWS_DEFENSIVE;
    if (found && f->choices) rws_site_expect_choice(path, site, value, f->choices(path, p));
    if (!found) {
        const bool given = rws_site_given(path, dim, n_values(path, f, p), &value);
        if (!given && defended && f->draw_defended) value = f->draw_defended(path, p, &log_defended);
        else if (!given) value = f->draw(path, p, !pass->pathwise);
        rws_site_put(path, f->name, size, value);
    }
    if (rws_site_scored(path)) {
        const rws_var log_density = (found && f->score ? f->score : f->log_density)(path, value, p);
        rws_term      kind = RWS_TERM_P;
        if (pass->mode == RWS_SLEEP || guide_draws(pass, found))
            kind = f->continuous && pass->pathwise ? RWS_TERM_R : RWS_TERM_Q;
        rws_site_term(path, kind, log_density);
        if (defended) rws_site_term(path, RWS_TERM_D, log_defended.id ? log_defended : log_density);
    }
    return rws_returns(path, value);
}

rws_var rws_categorical(rws_path *path, const char *site, rws_var logits)
{
    return rws_site_visit(path, site, &rws_categorical_family, logits, (rws_var){0});
}

rws_var rws_bernoulli(rws_path *path, const char *site, rws_var logits)
{
    const bool alone = rws_dim_for(path, logits, __func__) == 1;
    return rws_site_visit(path, site, alone ? &rws_bernoulli_family : &rws_bernoulli_vector_family, logits,
                          (rws_var){0});
}

rws_var rws_normal(rws_path *path, const char *site, rws_var mean, rws_var sd)
{
    return rws_site_visit(path, site, &rws_normal_family, mean, sd);
}

rws_var rws_uniform(rws_path *path, const char *site, rws_var low, rws_var high)
{
    return rws_site_visit(path, site, &rws_uniform_family, low, high);
}

rws_var rws_gumbel(rws_path *path, const char *site, rws_var location)
{
    return rws_site_visit(path, site, &rws_gumbel_family, location, (rws_var){0});
}

rws_var rws_concrete(rws_path *path, const char *site, rws_var logits, rws_var temperature)
{
    return rws_site_visit(path, site, &rws_concrete_family, logits, temperature);
}
