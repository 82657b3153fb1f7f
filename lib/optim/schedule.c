#include "optim/schedule.h"

#include "base/count.h"
#include "base/error.h"

#include <ctype.h>
#include <float.h>
#include <glib.h>
#include <string.h>

static const char *const group_names[] = {
    [RWS_THETA] = "theta", [RWS_PHI] = "phi", [RWS_CONTROL] = "control", [RWS_BASELINE] = "baseline"};
_Static_assert(sizeof group_names / sizeof *group_names == RWS_GROUPS, "every group has a name");

/* Reads a number at *at and moves past it. False, with *at unmoved, for text that g_ascii_strtod takes and that is not
 * a rate: signs, hexadecimal, "inf", "nan", and what float32 cannot hold. */
static int read_number(const char **at, double *out)
{
    if (!isdigit((unsigned char)**at) && **at != '.') return 0;
    if ((*at)[0] == '0' && ((*at)[1] == 'x' || (*at)[1] == 'X')) return 0;
    char        *end;
    const double x = g_ascii_strtod(*at, &end);
    if (end == *at || !(x <= FLT_MAX)) return 0;
    *out = x;
    *at = end;
    return 1;
}

static void skip_spaces(const char **at)
{
    while (**at == ' ') ++*at;
}

/* %.120s leaves space for the reason. */
#define REFUSE(...) return rws_fail(err, RWS_BAD_INPUT, "The learning rate \"%.120s\" " __VA_ARGS__)

/* One change at *at, added to *r; `rate` is the rate before it, and after it. */
static rws_status read_change(const char *text, const char **at, rws_rates *r, double *rate, rws_error *err)
{
    const char *change = *at;
    uint64_t    from, to;
    if (r->n_changes == RWS_MAX_SCHEDULE_CHANGES) REFUSE("has more than %d changes.", text, RWS_MAX_SCHEDULE_CHANGES);
    if (!rws__count_read(at, &from)) {
        REFUSE("should have an iteration at \"%.40s\", as in 400000:/3.", text, change);
    }
    to = from;
    const bool is_line = **at == '-';
    if (is_line) {
        ++*at;
        if (!rws__count_read(at, &to)) {
            REFUSE("should have a second iteration in \"%.40s\", as in 0-1000:1e-4.", text, change);
        }
        if (to <= from) REFUSE("has a line that ends before it has begun, at \"%.40s\".", text, change);
    }
    if (**at != ':') REFUSE("should have a colon after the iteration in \"%.40s\".", text, change);
    ++*at;

    const char operation = **at == '/' || **at == '*' ? *(*at)++ : '=';
    double     value;
    if (!read_number(at, &value)) {
        REFUSE("should have /FACTOR, *FACTOR or a rate after the colon in \"%.40s\".", text, change);
    }
    if (operation != '=' && value == 0.0) REFUSE("has a factor of 0 at \"%.40s\".", text, change);
    *rate = operation == '/' ? *rate / value : operation == '*' ? *rate * value : value;
    if (!(*rate <= FLT_MAX)) REFUSE("grows beyond all bounds at \"%.40s\".", text, change);

    if (r->n_changes > 0) {
        const uint64_t last_from = r->change[r->n_changes - 1].from, last_to = r->change[r->n_changes - 1].to;
        const bool     both_sudden = !is_line && last_from == last_to;
        if (from < last_to || (both_sudden && from == last_to)) {
            REFUSE("has its changes out of order at \"%.40s\".", text, change);
        }
    }
    r->change[r->n_changes].from = from;
    r->change[r->n_changes].to = to;
    r->change[r->n_changes].rate = *rate;
    r->n_changes++;
    return RWS_OK;
}

/* The length of a group's name and the equals sign at `at`; 0 if there is no name. */
static int name_length(const char *at)
{
    int n = 0;
    while (isalpha((unsigned char)at[n])) n++;
    return n > 0 && at[n] == '=' ? n + 1 : 0;
}

/* Moves past a comma and the spaces around it. False if there is none. */
static bool skip_comma(const char **at)
{
    skip_spaces(at);
    if (**at != ',') return false;
    ++*at;
    skip_spaces(at);
    return true;
}

/* A rate and its changes, up to the next name or the end. Afterwards *more says whether a name follows. */
static rws_status read_rates(const char *text, const char **at, rws_rates *r, bool *more, rws_error *err)
{
    *r = (rws_rates){0};
    *more = false;
    if (!read_number(at, &r->start)) {
        if (*at == text + strspn(text, " ")) REFUSE("must begin with a rate such as 1e-3 or theta=1e-3.", text);
        REFUSE("should have a rate such as 1e-3 at \"%.40s\".", text, *at);
    }
    double rate = r->start;
    while (skip_comma(at)) {
        *more = name_length(*at) > 0;
        if (*more) return RWS_OK;
        RWS_TRY(read_change(text, at, r, &rate, err));
    }
    return RWS_OK;
}

/* The name at *at and its rates. */
static rws_status read_group(const char *text, const char **at, rws_schedule *s, bool *more, rws_error *err)
{
    const int length = name_length(*at);
    int       g = 0;
    while (g < RWS_GROUPS &&
           !(strlen(group_names[g]) == (size_t)length - 1 && strncmp(*at, group_names[g], (size_t)length - 1) == 0))
        g++;
    if (g == RWS_GROUPS) {
        REFUSE("names a group \"%.*s\"; the groups are theta, phi, control and baseline.", text,
               length < 40 ? length - 1 : 40, *at);
    }
    if (s->groups >> g & 1) REFUSE("names the group %s twice.", text, group_names[g]);
    s->groups |= 1u << g;
    *at += length;
    return read_rates(text, at, &s->rates[g], more, err);
}

rws_status rws__schedule_parse(const char *text, rws_schedule *out, rws_error *err)
{
    rws_schedule s = {0};
    rws_rates    common;
    const char  *at = text;
    skip_spaces(&at);
    bool       more = name_length(at) > 0;
    const bool has_common = !more;
    if (has_common) RWS_TRY(read_rates(text, &at, &common, &more, err));
    while (more) RWS_TRY(read_group(text, &at, &s, &more, err));
    if (*at) REFUSE("cannot be read from \"%.40s\" on.", text, at);
    for (int g = 0; g < RWS_GROUPS; g++) { /* phi comes before the groups that follow it */
        const bool follows_phi = (g == RWS_CONTROL || g == RWS_BASELINE) && s.groups >> RWS_PHI & 1;
        if (s.groups >> g & 1 || (!follows_phi && !has_common)) continue;
        s.rates[g] = follows_phi ? s.rates[RWS_PHI] : common;
        s.groups |= 1u << g;
    }
    *out = s;
    return RWS_OK;
}

rws_status rws__schedule_cover(const rws_schedule *s, unsigned groups, const char *text, rws_error *err)
{
    for (int g = 0; g < RWS_GROUPS; g++) {
        if (!(groups >> g & 1) || s->groups >> g & 1) continue;
        REFUSE("gives no rate to the group %s; add %s=RATE, or begin with a rate for all groups.", text, group_names[g],
               group_names[g]);
    }
    return RWS_OK;
}

#undef REFUSE

static float rate_at(const rws_rates *r, uint64_t iteration)
{
    double rate = r->start;
    for (int i = 0; i < r->n_changes && iteration >= r->change[i].from; i++) {
        const uint64_t from = r->change[i].from, to = r->change[i].to;
        const double   share = iteration >= to ? 1.0 : (double)(iteration - from) / (double)(to - from);
        /* Not rate + share * (target - rate): at share 1 that can miss the target by an ulp. */
        rate = (1.0 - share) * rate + share * r->change[i].rate;
    }
    return (float)rate;
}

float rws__schedule_at(const rws_schedule *s, rws_group group, uint64_t iteration)
{
    return rate_at(&s->rates[group], iteration);
}

static bool agree_at(const rws_rates *a, const rws_rates *b, uint64_t iteration)
{
    return rate_at(a, iteration) == rate_at(b, iteration);
}

/* Between two iterations at which either of them changes, both are straight lines, which agree if their ends do. */
static bool rates_agree(const rws_rates *a, const rws_rates *b, uint64_t n)
{
    if (n == 0) return true;
    bool agree = agree_at(a, b, 0) && agree_at(a, b, n - 1);
    for (int i = 0; i < a->n_changes + b->n_changes; i++) {
        const rws_rates *r = i < a->n_changes ? a : b;
        const int        k = i < a->n_changes ? i : i - a->n_changes;
        const uint64_t   places[] = {r->change[k].from, r->change[k].to};
        for (int j = 0; j < 2; j++) {
            agree = agree && (places[j] >= n || agree_at(a, b, places[j]));
            agree = agree && (places[j] == 0 || places[j] > n || agree_at(a, b, places[j] - 1));
        }
    }
    return agree;
}

bool rws__schedule_agree(const rws_schedule *a, const rws_schedule *b, uint64_t n)
{
    bool agree = true;
    for (int g = 0; g < RWS_GROUPS; g++)
        if (a->groups & b->groups & 1u << g) agree = agree && rates_agree(&a->rates[g], &b->rates[g], n);
    return agree;
}
