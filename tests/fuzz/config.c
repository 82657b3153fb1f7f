/* config.c - libFuzzer harness for config.json: whatever the bytes, they are refused with a message that names the file, or
 * every number is in its range, the text of the configuration reads the same again, and a small built-in model takes the
 * configuration or refuses it with a message. */
#include "bytes.h"
#include "store/config.h"
#include "rws_train.h"

static void check(const rws_config *c)
{
    if (!c->method || !c->optimiser || !c->lr) abort();
    if (c->particles < 1 || c->batch < 1 || c->shards < 1 || c->particle_shards < 1 || c->n_test < 1) abort();
    if (c->eval_particles < 1 || c->iterations < 1 || c->eval_every < 1 || c->threads < 1) abort();
    if (!(c->l2 >= 0 && c->l2 <= 1e6) || c->n_set < 0 || c->n_set > RWS_MAX_SET) abort();
    for (int i = 0; i < c->n_set; i++)
        if (!strchr(c->set[i], '=')) abort();
}

/* The same text, read again, is the same configuration. */
static void round_trip(const rws_config_json *j)
{
    rws_error       err = {""};
    rws_config      again;
    rws_config_json json = {0};
    const char     *model;
    char key[RWS_KEY_SIZE], *text = rws__config_text(j->document), *identity = rws__config_identity(j->document);
    if (!text || !identity) abort();
    if (rws__config_read(bytes_file((uint8_t *)text, strlen(text)), &again, &model, &json, &err) != RWS_OK) abort();
    if (rws__config_compare(json.document, identity, key, &err) != RWS_OK || key[0]) abort();
    check(&again);
    rws__config_release(&json);
    free(identity);
    free(text);
}

/* Models whose setting-up is cheap for any settings that they take. */
static void try_trainer(const rws_config *c)
{
    rws_error    err = {""};
    rws_trainer *t;
    if (!c->model || (strcmp(c->model, "gmm") != 0 && strcmp(c->model, "pcfg") != 0)) return;
    if (c->threads > 2 || c->batch > 100 || c->particles > 100 || c->shards > 8 || c->particle_shards > 8 ||
        c->n_test > 1000)
        return;
    for (int i = 0; i < c->n_set; i++) /* files of others, sizes */
        if (strncmp(c->set[i], "given=", 6) == 0 || strchr(c->set[i], '/') || strlen(c->set[i]) > 40) return;
    if (rws_trainer_new(c, NULL, &t, &err) == RWS_OK) rws_trainer_free(t);
    else bytes_check_refusal(&err, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error       err = {""};
    rws_config      config;
    rws_config_json json = {0};
    const char     *model;
    if (rws__config_read(bytes_file(data, size), &config, &model, &json, &err) != RWS_OK) {
        bytes_check_refusal(&err, "/proc/self/fd/");
        if (json.document || json.set) abort();
        return 0;
    }
    check(&config);
    round_trip(&json);
    try_trainer(&config);
    rws__config_release(&json);
    return 0;
}
