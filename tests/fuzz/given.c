/* given.c - libFuzzer harness for files of given choices: whatever the bytes, a trainer refuses them with a
 * message, or trains an iteration with them, or says what site they do not fit. */
#include "bytes.h"
#include "rws_train.h"

typedef struct {
    rws_param *prior, *seen;
} net;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    net *w = *state = rws_setup_alloc(s, sizeof *w);
    rws_setup_label(s, "datum", 1);
    rws_setup_field(s, "x", 1);
    w->prior = rws_setup_param(s, RWS_THETA, "theta.prior", 1, 3, RWS_ZERO);
    w->seen = rws_setup_param(s, RWS_PHI, "phi.seen", 1, 3, RWS_ZERO);
    return RWS_OK;
}

static rws_status data_of(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                          float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = (float)((first + (uint64_t)i) % 4), fields[1][i] = (float)(i % 2);
    return RWS_OK;
}

static void model(rws_path *path, const void *state)
{
    const net *w = state;
    const int  z = rws_branch(path, rws_categorical(path, "z", rws_parameter(path, w->prior)));
    for (int i = 0; i < z; i++) rws_flip(path, "more", rws_constant(path, 0));
    rws_flip(path, "x", rws_constant(path, (float)z));
}

static void guide(rws_path *path, const void *state)
{
    const net *w = state;
    const int  z = rws_branch(path, rws_categorical(path, "z", rws_parameter(path, w->seen)));
    for (int i = 0; i < z; i++) rws_flip(path, "more", rws_constant(path, 0));
}

static const rws_model small = {.abi = RWS_ABI,
                                .name = "small",
                                .help = "a choice and some flips",
                                .defaults = {.batch = 4, .n_test = 4, .shards = 1, .particles = 4},
                                .setup = setup,
                                .data = data_of,
                                .guide = guide,
                                .model = model};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error    err = {""};
    rws_trainer *t;
    char         set[96];
    const char  *path = bytes_file(data, size);
    snprintf(set, sizeof set, "given=%s", path);
    const rws_config c = {
        .model = "small", .method = "ww", .particles = 4, .seed = 1, .threads = 1, .n_set = 1, .set = {set}};
    if (rws_trainer_new(&c, &small, &t, &err) != RWS_OK) {
        bytes_check_refusal(&err, NULL); /* it names the file and line, or the site that cannot be given */
        return 0;
    }
    if (rws_trainer_step(t, &err) != RWS_OK) bytes_check_refusal(&err, NULL);
    rws_trainer_free(t);
    return 0;
}
