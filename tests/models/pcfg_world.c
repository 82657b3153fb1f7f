#include "pcfg_world.h"

#include <string.h>

world *world_new(const char *const *set)
{
    world    *w = calloc(1, sizeof *w);
    rws_error err = {""};
    w->setup.given = w->given;
    w->setup.seed = 5;
    for (const rws_setting *s = rws_model_pcfg.settings; s->name; s++)
        w->given[w->setup.n_given++] = (rws_given){s, s->value};
    for (; *set; set++)
        for (int i = 0; i < w->setup.n_given; i++) {
            const size_t n = strlen(w->given[i].setting->name);
            if (strncmp(*set, w->given[i].setting->name, n) == 0 && (*set)[n] == '=') w->given[i].value = *set + n + 1;
        }
    rws_random random = rws__random_new(rws__key_for(5, 0, RWS_KEY_INIT, 1), 0);
    if (rws_model_pcfg.setup(&w->setup, &random, &w->state, &err) != RWS_OK) fail_msg("%s", err.text);
    rws__params_pack(&w->setup.params);
    w->method = (rws_method){.model = &rws_model_pcfg, .state = w->state};
    w->engine = rws__engine_new(&w->setup.params, w->setup.fields, w->setup.n_fields, NULL);
    if (rws__grammar_find(rws_setup_text(&w->setup, "grammar"), &w->g, &err) != RWS_OK) fail_msg("%s", err.text);
    w->dim = w->setup.fields[0].dim;
    return w;
}

void world_free(world *w)
{
    rws__engine_free(w->engine);
    rws_model_pcfg.release(w->state);
    rws__setup_release(&w->setup);
    rws__grammar_free(w->g);
    free(w);
}

rws_trainer *trainer(const char *method, rws_config c, const char *const *set)
{
    c.model = "pcfg";
    c.method = method;
    c.seed = 7;
    for (; *set; set++) c.set[c.n_set++] = *set;
    return trainer_for(&c, NULL);
}

void favour(const rws_params *params, const char *nonterminal, float theta, float phi)
{
    param_of(params, "theta.%s", nonterminal)->value[0] += theta;
    param_of(params, "phi.proposal.%s.4.bias", nonterminal)->value[0] += phi;
    rws__params_transpose(params, ~0u, params->value, params->transposed);
}

void log_theta(const world *w, double *log_p)
{
    for (int a = 0; a < w->g->n_nonterminals; a++) {
        const float *logits = param_of(&w->setup.params, "theta.%s", w->g->nonterminals[a])->value;
        const int    first = w->g->first[a], n = w->g->first[a + 1] - first;
        double       total = 0;
        for (int i = 0; i < n; i++) total += exp((double)logits[i]);
        for (int i = 0; i < n; i++) log_p[first + i] = (double)logits[i] - log(total);
    }
}

float *datum_of(const world *w, const int *tokens, int n)
{
    assert_true(n < w->dim);
    float *x = calloc((size_t)w->dim, sizeof *x);
    x[0] = (float)n;
    for (int i = 0; i < n; i++) x[1 + i] = (float)tokens[i];
    return x;
}

float *datum(const world *w, const char *text)
{
    int tokens[100];
    return datum_of(w, tokens, rws__grammar_tokens(w->g, text, tokens, 100));
}

float *data(const world *w, int B)
{
    float     *x = calloc((size_t)B * (size_t)w->dim, sizeof *x);
    rws_error  err = {""};
    rws_random random = rws__random_new(rws__key_for(6, 0, RWS_KEY_DATA, 0), 0);
    if (rws_model_pcfg.data(w->state, RWS_TRAIN, 0, B, &random, &x, &err) != RWS_OK) fail_msg("%s", err.text);
    return x;
}

rws_scores *pass(world *w, const float *x, how h)
{
    rws_error      err = {""};
    const rws_pass p = {.model = w->method.model,
                        .state = w->method.state,
                        .mode = h.mode,
                        .n_data = h.mode == RWS_SLEEP ? 1 : h.B,
                        .n_particles = h.K,
                        .fields = &x,
                        .scalar = h.scalar,
                        .reports = true,
                        .groups = h.groups,
                        .key = rws__key_for(1, h.draw, RWS_KEY_WAKE, 0)};
    if (rws__engine_forward(w->engine, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    return rws__engine_scores(w->engine);
}

static int read_node(const rws_grammar *g, const char **at, rws_sequence *tree)
{
    char name[64];
    int  length = 0;
    *at += **at == ' ';
    const bool open = **at == '(';
    *at += open;
    while (**at && !strchr(" ()", **at)) name[length++] = *(*at)++;
    name[length] = '\0';
    const int a = rws__grammar_nonterminal(g, name);
    if (!open && a < 0) return -1 - rws__grammar_word(g, name, (size_t)length); /* a word, as a negative number */
    const int place = tree->n;
    assert_true(rws__sequence_push(tree, RWS_LEAF));
    if (!open) return a;
    int below[64], n = 0;
    while (**at != ')') below[n++] = read_node(g, at, tree);
    ++*at;
    for (int i = g->first[a]; i < g->first[a + 1] && tree->at[place] == RWS_LEAF; i++) {
        const rws_production *p = &g->productions[i];
        bool                  same = p->n_right == n;
        for (int k = 0; k < n && same; k++)
            same = p->right[k].word ? below[k] == -1 - p->right[k].id : below[k] == p->right[k].id;
        if (same) tree->at[place] = i;
    }
    assert_int_not_equal(tree->at[place], RWS_LEAF);
    return a;
}

rws_sequence tree_of(world *w, int row)
{
    rws_sequence tree = {0};
    const char  *text = rws__engine_report_text(w->engine, row, "tree", 0);
    assert_non_null(text);
    assert_int_equal(read_node(w->g, &text, &tree), w->g->start);
    assert_int_equal(*text, '\0');
    return tree;
}

bool has_leaf(const rws_sequence *tree)
{
    for (int i = 0; i < tree->n; i++)
        if (tree->at[i] == RWS_LEAF) return true;
    return false;
}
