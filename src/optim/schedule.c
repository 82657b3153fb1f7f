#include "optim/schedule.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number at *at and moves past it. False, with *at unmoved, for what strtod takes and a rate is not: signs,
 * hexadecimal, "inf", "nan", and what float32 cannot hold. */
static int read_number(const char **at, double *out)
{
    if (!isdigit((unsigned char)**at) && **at != '.') return 0;
    if ((*at)[0] == '0' && ((*at)[1] == 'x' || (*at)[1] == 'X')) return 0;
    char        *end;
    const double x = strtod(*at, &end);
    if (end == *at || !(x <= FLT_MAX)) return 0;
    *out = x;
    *at = end;
    return 1;
}

static int read_iteration(const char **at, uint64_t *out)
{
    if (!isdigit((unsigned char)**at)) return 0;
    char *end;
    errno = 0;
    const unsigned long long x = strtoull(*at, &end, 10);
    if (errno == ERANGE) return 0;
    *out = x;
    *at = end;
    return 1;
}

static void skip_spaces(const char **at)
{
    while (**at == ' ') ++*at;
}

rws_status rws_schedule_parse(const char *text, rws_schedule *out, rws_error *err)
{
    /* %.120s leaves room for the reason. */
#define REFUSE(...) return rws_fail(err, RWS_BAD_INPUT, "The learning rate \"%.120s\" " __VA_ARGS__)
    rws_schedule s = {0};
    const char  *at = text;
    skip_spaces(&at);
    if (!read_number(&at, &s.start)) REFUSE("must begin with a rate such as 1e-3.", text);
    skip_spaces(&at);

    double rate = s.start;
    while (*at == ',') {
        ++at;
        skip_spaces(&at);
        if (s.n_changes == RWS_SCHEDULE_MAX_CHANGES) {
            REFUSE("has more than %d changes.", text, RWS_SCHEDULE_MAX_CHANGES);
        }
        const char *change = at;
        uint64_t    from, to;
        if (!read_iteration(&at, &from)) {
            REFUSE("should have an iteration at \"%.40s\", as in 400000:/3.", text, change);
        }
        to = from;
        const int is_line = *at == '-';
        if (is_line) {
            ++at;
            if (!read_iteration(&at, &to)) {
                REFUSE("should have a second iteration in \"%.40s\", as in 0-1000:1e-4.", text, change);
            }
            if (to <= from) REFUSE("has a line that ends before it has begun, at \"%.40s\".", text, change);
        }
        if (*at != ':') REFUSE("should have a colon after the iteration in \"%.40s\".", text, change);
        ++at;

        const char operation = *at == '/' || *at == '*' ? *at++ : '=';
        double     value;
        if (!read_number(&at, &value)) {
            REFUSE("should have /FACTOR, *FACTOR or a rate after the colon in \"%.40s\".", text, change);
        }
        if (operation != '=' && value == 0.0) REFUSE("has a factor of 0 at \"%.40s\".", text, change);
        rate = operation == '/' ? rate / value : operation == '*' ? rate * value : value;
        if (!(rate <= FLT_MAX)) REFUSE("grows beyond all bounds at \"%.40s\".", text, change);

        if (s.n_changes > 0) {
            const uint64_t last_from = s.change[s.n_changes - 1].from, last_to = s.change[s.n_changes - 1].to;
            const int      both_sudden = !is_line && last_from == last_to;
            if (from < last_to || (both_sudden && from == last_to)) {
                REFUSE("has its changes out of order at \"%.40s\".", text, change);
            }
        }
        s.change[s.n_changes].from = from;
        s.change[s.n_changes].to = to;
        s.change[s.n_changes].rate = rate;
        s.n_changes++;
        skip_spaces(&at);
    }
    if (*at) REFUSE("cannot be read from \"%.40s\" on.", text, at);
    *out = s;
    return RWS_OK;
#undef REFUSE
}

float rws_schedule_at(const rws_schedule *s, uint64_t iteration)
{
    double rate = s->start;
    for (int i = 0; i < s->n_changes && iteration >= s->change[i].from; i++) {
        const uint64_t from = s->change[i].from, to = s->change[i].to;
        const double   share = iteration >= to ? 1.0 : (double)(iteration - from) / (double)(to - from);
        /* Not rate + share * (target - rate): at share 1 that can miss the target by an ulp. */
        rate = (1.0 - share) * rate + share * s->change[i].rate;
    }
    return (float)rate;
}

static bool agree_at(const rws_schedule *a, const rws_schedule *b, uint64_t iteration)
{
    return rws_schedule_at(a, iteration) == rws_schedule_at(b, iteration);
}

/* Between two places where either of them changes both are straight lines, and those agree if their ends do. */
bool rws_schedule_agree(const rws_schedule *a, const rws_schedule *b, uint64_t n)
{
    if (n == 0) return true;
    bool agree = agree_at(a, b, 0) && agree_at(a, b, n - 1);
    for (int i = 0; i < a->n_changes + b->n_changes; i++) {
        const rws_schedule *s = i < a->n_changes ? a : b;
        const int           k = i < a->n_changes ? i : i - a->n_changes;
        const uint64_t      places[] = {s->change[k].from, s->change[k].to};
        for (int j = 0; j < 2; j++) {
            agree = agree && (places[j] >= n || agree_at(a, b, places[j]));
            agree = agree && (places[j] == 0 || places[j] > n || agree_at(a, b, places[j] - 1));
        }
    }
    return agree;
}
