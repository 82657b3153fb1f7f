#include "files.h"

#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char folder[32];

int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/rws-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about, (void)type, (void)where;
    return remove(path);
}

int folder_remove(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int folder_remove_empty(void **state)
{
    (void)state;
    return rmdir(folder);
}

const char *in_folder(const char *name)
{
    static char paths[4][PATH_MAX];
    static int  next;
    if (name[0] == '/') return name;
    char *path = paths[next++ % 4];
    assert_true(snprintf(path, sizeof paths[0], "%s/%s", folder, name) < (int)sizeof paths[0]);
    return path;
}

bool is_there(const char *name)
{
    struct stat about;
    return lstat(in_folder(name), &about) == 0;
}

int n_temporaries(const char *name)
{
    glob_t found;
    char   pattern[PATH_MAX + 64];
    snprintf(pattern, sizeof pattern, "%s/.rws-????????????????.tmp", in_folder(name));
    const int n = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return n;
}

char *slurp(const char *name, size_t *size)
{
    FILE *f = fopen(in_folder(name), "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    bytes[*size] = '\0';
    fclose(f);
    return bytes;
}

void spill(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

int occurrences(const char *text, const char *piece)
{
    int n = 0;
    for (const char *at = strstr(text, piece); at; at = strstr(at + 1, piece)) n++;
    return n;
}

void must(rws_status status, const rws_error *err)
{
    if (status != RWS_OK) fail_msg("refused: %s", err->text);
}

void assert_sentence(const rws_error *err, const char *words)
{
    const size_t length = strlen(err->text);
    if (length < 10 || err->text[length - 1] != '.') fail_msg("not a message: %s", err->text);
    if (!strstr(err->text, words)) fail_msg("\"%s\" is not in: %s", words, err->text);
}

void assert_refused(rws_status status, rws_status expected, const rws_error *err, const char *a, const char *b)
{
    if (status != expected) fail_msg("status %d instead of %d (%s, %s)", status, expected, a, b);
    assert_sentence(err, a);
    assert_sentence(err, b);
}
