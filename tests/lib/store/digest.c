#include "digest.h"

#include "base/file.h"
#include "data/safetensors.h"
#include "rws_results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t start = UINT64_C(0xcbf29ce484222325);

static void mix(uint64_t *hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) *hash = (*hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
}

bool digest_names(const char *folder, uint64_t *hash)
{
    char      path[600];
    uint8_t  *bytes;
    size_t    size;
    rws_error err;
    *hash = start;
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    if (rws__file_read(path, 1 << 26, &bytes, &size, &err) != RWS_OK) return false;
    json_t *header = size > 8 ? json_loadb((char *)bytes + 8, size - 8, JSON_DISABLE_EOF_CHECK, NULL) : NULL, *value;
    const char *name;
    json_object_foreach(header, name, value) mix(hash, name, strlen(name) + 1);
    json_object_foreach(json_object_get(header, "__metadata__"), name, value) mix(hash, name, strlen(name) + 1);
    const bool read = header;
    json_decref(header);
    free(bytes);
    return read;
}

bool digest_checkpoint(const char *folder, uint64_t *hash)
{
    char             path[600];
    rws_safetensors *st;
    rws_error        err;
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    if (!digest_names(folder, hash) || rws__safetensors_open(path, &st, &err) != RWS_OK) return false;
    for (size_t i = 0; i < rws__safetensors_count(st); i++) {
        const rws_tensor_in *t = rws__safetensors_at(st, i);
        mix(hash, t->name, strlen(t->name));
        if (strcmp(t->name, "seconds") != 0) mix(hash, t->data, t->n_elements * rws__dtype_size(t->dtype));
    }
    rws__safetensors_close(st);
    return true;
}

static void mix_result(uint64_t *hash, const rws_result *run)
{
    mix(hash, run->name, strlen(run->name));
    mix(hash, &run->iteration, sizeof run->iteration);
    mix(hash, &run->iterations, sizeof run->iterations);
    for (int k = 0; k < run->n_keys; k++) mix(hash, run->keys[k].value, strlen(run->keys[k].value));
    for (int k = 0; k < run->n_histories; k++) {
        const rws_history *h = &run->histories[k];
        mix(hash, h->metric, strlen(h->metric));
        mix(hash, h->iterations, (size_t)h->n * sizeof *h->iterations);
        mix(hash, h->values, (size_t)h->n * sizeof *h->values);
    }
    for (int k = 0; k < run->n_shots; k++) {
        const rws_shot *s = &run->shots[k];
        mix(hash, s->name, strlen(s->name));
        mix(hash, &s->iteration, sizeof s->iteration);
        mix(hash, s->values, (size_t)s->n * sizeof *s->values);
        for (int j = 0; j < s->n; j++)
            mix(hash, s->labels[j] ? s->labels[j] : "", s->labels[j] ? strlen(s->labels[j]) : 0);
    }
}

uint64_t digest_run(const char *folder, rws_error *err)
{
    uint64_t     hash;
    rws_results *r;
    if (!digest_checkpoint(folder, &hash)) {
        snprintf(err->text, sizeof err->text, "The checkpoint in %s cannot be read.", folder);
        return 0;
    }
    if (rws_results_read(&folder, 1, &r, err) != RWS_OK) return 0;
    for (int i = 0; i < r->n; i++) mix_result(&hash, &r->runs[i]);
    rws_results_free(r);
    return hash;
}
