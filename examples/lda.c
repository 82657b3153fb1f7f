/* lda.c - latent Dirichlet allocation: what are the manual pages of Linux about?
 *     examples/lda.sh words.csv     # fetches the pages from Debian and counts their words
 *     make examples && build/rws train build/examples/lda.so --data words.csv --method vimco --out topics
 * A topic is a distribution over words. A page has shares of all topics, by a Dirichlet distribution, and each of its words
 * comes from a topic that is drawn by these shares; the topics of single words are summed out. The topics are learned.
 * The integral over shares is out of reach: compare log_evidence for more and more particles (rws eval topics -k 1000).
 * The snapshot "topics" (rws export topics --snapshots) has the words that stand out in each topic.
 * After D. Blei, A. Ng and M. Jordan, Latent Dirichlet allocation (2003). */
#include <math.h>
#include <rws.h>
#include <stdio.h>

enum { TOPICS = 10, HIDDEN = 100, TOP = 8 };

typedef struct {
    rws_table *table;  /* a row for each page: its number of words, and how often it has each word */
    int        words;  /* how many different words there are */
    rws_param *length; /* theta: log-odds of the geometric number of words of a page */
    rws_param *topics; /* theta: the logits of the words, a row for each topic */
    rws_layer *reader; /* phi: from the words of a page to its shares */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)err, *state = rws_setup_alloc(s, sizeof *w));
    char   columns[32];
    w->table = rws_setup_table(s, "data", NULL); /* every tenth page is for tests */
    snprintf(columns, sizeof columns, "2:%d", rws_table_columns(w->table));
    rws_setup_table_field(s, w->table, "n", "n");
    w->words = rws_setup_table_field(s, w->table, "words", columns);

    w->length = rws_setup_param(s, RWS_THETA, "theta.length", 1, 1, RWS_ZERO);
    rws_param_values(w->length)[0] = -5;
    w->topics = rws_setup_param(s, RWS_THETA, "theta.topics", TOPICS, w->words, RWS_ZERO);
    for (int i = 0; i < TOPICS * w->words; i++) rws_param_values(w->topics)[i] = (float)rws_random_normal(random) / 2;
    const int sizes[] = {w->words, HIDDEN, TOPICS};
    w->reader = rws_setup_mlp(s, RWS_PHI, "phi.reader", RWS_RELU, RWS_UNIFORM, sizes, 3);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    return rws_table_fill(((const world *)w)->table, s, first, n, g, to, e);
}

static void model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var topics = rws_parameter(path, w->topics), half = rws_constant(path, 0.5f);
    rws_var       halves[TOPICS], words[TOPICS];
    for (int t = 0; t < TOPICS; t++) {
        halves[t] = half;
        words[t] = rws_apply(path, RWS_EXP, rws_log_softmax(path, rws_slice(path, topics, t * w->words, w->words)));
    }
    const rws_var columns = rws_transpose(path, rws_concat(path, words, TOPICS), w->words); /* words x topics */
    const rws_var shares = rws_dirichlet(path, "shares", rws_concat(path, halves, TOPICS));
    const rws_var n = rws_geometric(path, "n", rws_parameter(path, w->length));                     /* observed */
    rws_multinomial(path, "words", n, rws_apply(path, RWS_LOG, rws_matvec(path, columns, shares))); /* observed */
    rws_report(path, "shares", shares);
}

static void guide(rws_path *path, const void *state)
{
    const rws_var seen = rws_apply(path, RWS_LOG1P, rws_observed(path, "words"));
    const rws_var read = rws_apply(path, RWS_EXP, rws_mlp(path, ((const world *)state)->reader, seen));
    rws_dirichlet(path, "shares", rws_affine(path, read, 1, 0.1f));
}

/* The words of each topic whose logit is furthest above its mean over the topics. */
static rws_status topics(rws_eval *e, const void *state, rws_error *err)
{
    const world *w = state;
    const float *logits = rws_param_values(w->topics);
    for (int t = 0; t < TOPICS; t++) {
        double before = INFINITY;
        for (int k = 0; k < TOP && k < w->words; k++) {
            double best = -INFINITY;
            int    word = 0;
            for (int i = 0; i < w->words; i++) {
                double lift = (double)logits[t * w->words + i];
                for (int u = 0; u < TOPICS; u++) lift -= (double)logits[u * w->words + i] / TOPICS;
                if (lift > best && lift < before) best = lift, word = i;
            }
            char label[128];
            snprintf(label, sizeof label, "%d %s", t, rws_table_name(w->table, word + 2));
            rws_eval_show(e, label, best);
            before = best;
        }
    }
    return (void)err, RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "lda",
    .help = "topics of the manual pages of Linux",
    .settings =
        (const rws_setting[]){{"data", "", 0, 0, "a table of word counts, made by examples/lda.sh", false}, {0}},
    .snapshots = (const rws_snapshot[]){{"topics", "words that stand out in each topic", topics}, {0}},
    .defaults = {.batch = 50, .particles = 5, .iterations = 3000, .n_test = 80, .lr = "5e-3,2500:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
