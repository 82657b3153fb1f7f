/* checkpoint.c - libFuzzer harness for whole checkpoints: the bytes take the place of the checkpoint of a run, which is then
 * opened and asked. Whatever they are, they are refused with a message that names the file, or the run answers. Names of
 * checksums are overwritten first in most inputs, so that the file counts as one of an older version, which has none:
 * otherwise every change would be refused. RWS_FUZZ_RUN names the folder of the run. */
#include "bytes.h"
#include "rws_train.h"

#include <fcntl.h>

static void hide(uint8_t *bytes, size_t size, const char *name)
{
    const size_t length = strlen(name);
    for (uint8_t *at; (at = memmem(bytes, size, name, length));) *at = 'X';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[4096];
    rws_error   err = {""};
    const char *folder = getenv("RWS_FUZZ_RUN");
    if (!folder) abort();
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) abort();
    if (size) memcpy(bytes, data, size);
    if (size % 8) hide(bytes, size, "crc32");
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) != 0) abort();
    free(bytes);
    rws_posterior *p;
    if (rws_posterior_open(folder, NULL, NULL, &p, &err) != RWS_OK) {
        bytes_check_refusal(&err, "checkpoint.safetensors");
        return 0;
    }
    rws_answers       *answers;
    const rws_question q = {.test = 1, .n_particles = 3};
    if (rws_posterior_ask(p, &q, &answers, &err) == RWS_OK) rws_answers_free(answers);
    else bytes_check_refusal(&err, NULL);
    rws_posterior_free(p);
    return 0;
}
