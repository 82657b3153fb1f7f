/* sessions.c - learn from series in a file: who only looks around in a shop, and who buys? Each session has some pages.
 *     make examples && build/rws train build/examples/sessions.so --data examples/sessions.csv */
#include <rws.h>
enum { PAGES = 4 };
typedef struct {
    rws_table *table;
    rws_param *buys, *pages, *pace;        /* theta: log-odds; logits of a page, and its log-seconds, of both kinds */
    rws_layer *of_page, *of_time, *of_sum; /* phi */
} world;
static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    world *w = *state = rws_setup_alloc(s, sizeof *w);
    w->table =
        rws_setup_table(s, "data", &(rws_table_options){.id = "session"}); /* a tenth of the sessions is for tests */
    rws_setup_table_length(s, w->table, "n");
    rws_setup_table_series(s, w->table, "page", "page",
                           100); /* up to 100, because a dream may be longer than the data */
    rws_setup_table_series(s, w->table, "seconds", "seconds", 100);
    w->buys = rws_setup_param(s, RWS_THETA, "theta.buys", 1, 1, RWS_ZERO);
    w->pages = rws_setup_param(s, RWS_THETA, "theta.pages", 2, PAGES, RWS_UNIFORM);
    w->pace = rws_setup_param(s, RWS_THETA, "theta.pace", 2, 1, RWS_ZERO);
    rws_param_values(w->pace)[0] = 2, rws_param_values(w->pace)[1] = 2.5f; /* which of the two kinds is which */
    w->of_page = rws_setup_embedding(s, RWS_PHI, "phi.page", PAGES, 8);
    w->of_time = rws_setup_linear(s, RWS_PHI, "phi.time", 1, 8, RWS_UNIFORM);
    w->of_sum = rws_setup_linear(s, RWS_PHI, "phi.sum", 8, 1, RWS_UNIFORM);
    return RWS_OK;
}
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    return rws_table_fill(((const world *)w)->table, s, first, n, g, to, e);
}
static void model(rws_path *path, const void *state)
{
    const world *w = state;
    const int    buys = rws_flip(path, "buys", rws_parameter(path, w->buys));
    const int n = rws_branch(path, rws_geometric(path, "n", rws_constant(path, -1.5f))); /* observed, like the rest */
    for (int t = 0; t < n; t++) {
        rws_categorical(path, "page", rws_slice(path, rws_parameter(path, w->pages), buys * PAGES, PAGES));
        rws_log_normal(path, "seconds", rws_slice(path, rws_parameter(path, w->pace), buys, 1),
                       rws_constant(path, 0.6f));
    }
}
static void guide(rws_path *path, const void *state)
{
    const world *w = state;
    const int    n = rws_branch(path, rws_length(path, "page"));
    rws_var      sum = rws_constants(path, (float[8]){0}, 8);
    for (int t = 0; t < n; t++) {
        const rws_var time = rws_affine(path, rws_apply(path, RWS_LOG, rws_item(path, "seconds", t)), 1, -2.5f);
        sum = rws_add(path, sum, rws_embedding(path, w->of_page, rws_item(path, "page", t)));
        sum = rws_add(path, sum, rws_linear(path, w->of_time, time));
    }
    rws_flip(path, "buys", rws_linear(path, w->of_sum, sum));
}
const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "sessions",
    .help = "who buys?",
    .settings = (const rws_setting[]){{"data", "", 0, 0, "a table: session, page, seconds", false}, {0}},
    .defaults = {.particles = 10, .batch = 50, .iterations = 2000, .eval_every = 500, .n_test = 30, .lr = "1e-2"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
