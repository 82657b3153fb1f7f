#include "rws/output.h"

#include "base/error.h"
#include "base/utf8.h"
#include "rws/listing.h"
#include "rws/options.h"
#include "rws/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws__output_tame(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        const bool c1 = *at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F, which terminals obey too */
        if (*at < 0x20 || *at == 0x7f || c1) *at = '?';
        if (c1) at[1] = '?';
    }
}

static void note(const char *format, va_list args)
{
    char message[2048], text[2048];
    vsnprintf(message, sizeof message, format, args);
    rws__options_spell(message, text, sizeof text);
    rws__output_tame(text);
    fputs("rws: ", stderr);
    rws__listing_words(stderr, text, 5, isatty(STDERR_FILENO) ? rws__screen_columns(STDERR_FILENO) - 5 : 0);
    fputc('\n', stderr);
}

void rws__note(const char *format, ...)
{
    va_list args;
    if (rws_rank() > 0) return;
    va_start(args, format);
    note(format, args);
    va_end(args);
}

void rws__complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(format, args);
    va_end(args);
}

bool rws__shell_word(const char *word, char *out, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+=:,@%-";
    size_t            n = 0;
    if (word[0] && !word[strspn(word, plain)]) return snprintf(out, size, "%s", word) < (int)size;
    if (size < 3) return false;
    out[n++] = '\'';
    for (; *word && n + 6 < size; word++) {
        if (*word == '\'') n += (size_t)sprintf(out + n, "'\\''");
        else out[n++] = *word;
    }
    out[n++] = '\'';
    out[n] = '\0';
    return !*word;
}

void rws__without_memory(const char *what)
{
    rws_error err;
    rws_no_memory(&err, what);
    rws__note("%s", err.text);
    exit(1);
}

json_t *rws__json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *rws__json_string(const char *text)
{
    json_t *value = text && rws__utf8_is(text) ? json_string(text) : json_null();
    rws__need_memory(value != NULL, "a JSON object");
    return value;
}

void rws__json_set_known(json_t *object, const char *key, double value)
{
    if (!isnan(value)) json_object_set_new(object, key, rws__json_real(value));
}

json_t *rws__json_value(const char *text)
{
    char        *end;
    const double value = strtod(text, &end);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return json_boolean(text[0] == 't');
    if (end == text || *end || !isfinite(value)) return rws__json_string(text);
    if (value == floor(value) && fabs(value) < 1e15) return json_integer((json_int_t)value);
    if (text[strspn(text, "-0123456789")]) return json_real(value);
    errno = 0;
    const long long whole = strtoll(text, NULL, 10);
    return errno ? rws__json_string(text) : json_integer(whole);
}

const char *rws__output_number(double value, char out[static 32])
{
    if (isnan(value)) return strcpy(out, "-");
    snprintf(out, 32, "%.6g", value);
    return out;
}

/* jansson got no memory for something; functions that add to an object may have left it out. */
static bool starved;

static void *allocate(size_t size)
{
    void *block = malloc(size);
    if (!block) starved = true;
    return block;
}

void rws__json_prepare(void)
{
    json_set_alloc_funcs(allocate, free);
}

void rws__json_dump(json_t *object, FILE *file, int digits)
{
    rws__need_memory(object && !starved, "a JSON object");
    json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(digits));
    rws__need_memory(!starved, "a JSON object");
    json_decref(object);
}

void rws__output_json(json_t *object)
{
    /* 15 digits: as many as every decimal number keeps through a double, so that 0.1 is written 0.1. */
    rws__json_dump(object, stdout, 15);
    putchar('\n');
    fflush(stdout);
}

void rws__output_buffer(rws_buffer *b)
{
    rws__need_memory(!b->starved, "a JSON object");
    puts(b->bytes);
    fflush(stdout);
    rws__buffer_release(b);
}

static bool is_of_model(const rws_model *model, const char *metric)
{
    const rws_metric *m = model->metrics;
    while (m && m->name && strcmp(m->name, metric) != 0) m++;
    return m && m->name;
}

void rws__output_measures(const rws_model *model, const rws_measures *m, double seconds, bool final)
{
    json_t *o = json_object();
    if (final) json_object_set_new(o, "final", json_true());
    json_object_set_new(o, "iteration", json_integer((json_int_t)m->iteration));
    json_object_set_new(o, "seconds", rws__json_real(round(1e6 * seconds) / 1e6));
    for (int i = 0; i < m->n; i++) {
        const char *name = m->names[i];
        if (is_of_model(model, name)) json_object_set_new(o, name, rws__json_real(m->value[i]));
        else rws__json_set_known(o, name, m->value[i]);
    }
    rws__json_set_known(o, "log_evidence_error", m->log_evidence_error);
    if (m->impossible > 0) rws__json_set_known(o, "impossible", m->impossible);
    rws__output_json(o);
}

void rws__output_impossible(const rws_measures *m)
{
    if (m->impossible > 0)
        rws__note("After iteration %" PRIu64
                  " no particle explains %.3g %% of the test data: log_evidence, kl and ess leave "
                  "them out, and look better than they are.",
                  m->iteration, 100 * m->impossible);
}

/* ---- rows of evaluations */

/* A number with its sign takes 12 columns, -1.23457e-05, and fewer with fewer digits. */
enum { ITERATION = 10, SECONDS = 10, MOST = 12, LEAST = 8 };

typedef struct {
    int n;     /* metrics that are shown */
    int extra; /* columns for each of them beyond the least */
} layout;

static int least(const char *name)
{
    const int n = (int)strlen(name);
    return n > LEAST ? n : LEAST;
}

static int width_of(const char *name, const layout *l)
{
    const int n = (int)strlen(name), width = LEAST + l->extra < MOST ? LEAST + l->extra : MOST;
    return n > width ? n : width;
}

static layout layout_of(const rws_measures *m, bool wide)
{
    const int columns = wide ? 0 : rws__screen_table();
    int       n = 0, at = ITERATION + 2 + SECONDS;
    if (!columns) return (layout){m->n, MOST};
    while (n < m->n && (n == 0 || at + 2 + least(m->names[n]) <= columns)) at += 2 + least(m->names[n++]);
    layout l = {n, 0};
    for (int used = 0; l.extra < MOST && used <= columns; l.extra++) {
        const layout more = {n, l.extra + 1};
        used = ITERATION + 2 + SECONDS;
        for (int i = 0; i < n; i++) used += 2 + width_of(m->names[i], &more);
        if (used > columns) break;
    }
    return l;
}

/* A number with as many digits as fit. */
static const char *fitting(double value, int width, char out[static 32])
{
    rws__output_number(value, out);
    for (int digits = 5; digits > 0 && (int)strlen(out) > width && !isnan(value); digits--)
        snprintf(out, 32, "%.*g", digits, value);
    return out;
}

static void print_heading(const rws_measures *m, const layout *l)
{
    printf("%*s  %*s", ITERATION, "iteration", SECONDS, "seconds");
    for (int i = 0; i < l->n; i++) printf("  %*s", width_of(m->names[i], l), m->names[i]);
    putchar('\n');
}

void rws__output_row(const rws_measures *m, double seconds, int row, bool wide)
{
    const layout l = layout_of(m, wide);
    const int    page = rws__screen_rows() > 4 ? rws__screen_rows() - 2 : INT_MAX;
    char         text[32];
    if (row == 0 && l.n < m->n)
        rws__note("%d metric%s not fit beside the others; --wide shows all.", m->n - l.n,
                  m->n - l.n > 1 ? "s do" : " does");
    if (row % page == 0) print_heading(m, &l);
    printf("%*" PRIu64 "  %*.3f", ITERATION, m->iteration, SECONDS, seconds);
    for (int i = 0; i < l.n; i++) {
        const int width = width_of(m->names[i], &l);
        printf("  %*s", width, fitting(m->value[i], width, text));
    }
    putchar('\n');
    fflush(stdout);
}

void rws__output_brief(const rws_measures *m, char *out, size_t size)
{
    size_t used = 0;
    int    n = 0;
    out[0] = '\0';
    for (int i = 0; i < m->n && n < 2 && used < size; i++) {
        if (isnan(m->value[i])) continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s %.3g", n++ ? "  " : "", m->names[i], m->value[i]);
    }
}
