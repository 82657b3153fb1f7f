/* site.c - what happens at a site: find the value or draw it, then add its log-density where one is wanted. */
#include "dist/dist.h"

#include "base/error.h"

#include <string.h>

int rws_dist_longest(rws_path *path, const rws_var *p, int n)
{
    int longest = 1;
    for (int i = 0; i < n; i++) longest = rws_dim(path, p[i]) > longest ? rws_dim(path, p[i]) : longest;
    return longest;
}

static int length_of(rws_path *path, const char *site, const rws_family *f, const rws_var *p)
{
    if (f->length) return f->length(path, p);
    const int n = rws_dist_longest(path, p, f->n_params);
    for (int i = 0; i < f->n_params; i++)
        if (rws_dim(path, p[i]) != n && rws_dim(path, p[i]) != 1)
            rws_give_up(path, "The parameters of the %s at site \"%s\" have %d and %d numbers; each takes %d or 1.",
                        f->name, site, n, rws_dim(path, p[i]), n);
    return n;
}

static bool guide_draws(const rws_pass *pass, bool found)
{
    return !found && pass->mode == RWS_WAKE;
}

rws_var rws_site_visit(rws_path *path, const char *site, const rws_family *f, const rws_var *params)
{
    rws_var value;
    if (rws_replayed(path, &value)) return value;
    const rws_pass *pass = rws_path_pass(path);
    rws_var         p[RWS_OP_INPUTS], log_mixture = {0};
    RWS_CHECK(f->n_params < RWS_OP_INPUTS);
    memcpy(p, params, (size_t)f->n_params * sizeof *p);
    if (f->prepare) f->prepare(path, p);
    const int  length = length_of(path, site, f, p), n_choices = f->choices ? f->choices(path, p) : 0;
    const int  size = f->size ? f->size(path, p) : f->choices ? n_choices : length;
    const bool found = rws_site_find(path, site, f->name, size, length, &value);
    if (found && f->choices) rws_site_expect_choice(path, site, value, n_choices);
    const bool given = !found && rws_site_given(path, length, f->binary ? 2 : n_choices, &value);
    const bool pathwise = rws_site_pathwise(path, f->name, f->continuous);
    const bool defended = guide_draws(pass, found) && !given && pass->proposal == RWS_DEFENSIVE;
    if (given) rws_site_put_given(path, f->name, size, value);
    else if (!found) {
        if (defended && f->draw_defensive) value = f->draw_defensive(path, p, &log_mixture);
        else value = f->draw(path, p, !pathwise);
        rws_site_put(path, f->name, size, value);
    }
    if (rws_site_scored(path)) {
        const rws_var log_density = (found && f->score ? f->score : f->log_density)(path, value, p);
        rws_term      kind = RWS_TERM_P;
        if (given && pass->mode == RWS_WAKE) kind = RWS_TERM_G;
        else if (pass->mode == RWS_SLEEP || guide_draws(pass, found)) kind = pathwise ? RWS_TERM_R : RWS_TERM_Q;
        rws_site_term(path, kind, log_density);
        if (defended) rws_site_term(path, RWS_TERM_D, log_mixture.id ? log_mixture : log_density);
    }
    return rws_returns(path, value);
}
