/* crasher.c - a model for the tests only, whose setting `does` says what it does: by default its guide reads a pointer that
 * is NULL. "says" reports about its particles; "loops" loops without an end, after a while; the name of a function makes
 * this function fail without a message. */
#include "rws.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 40 }; /* numbers of a report that is printed only if there is no other */

static rws_status outcome(const char *does, const char *function)
{
    if (does && strcmp(does, "77") == 0) return (rws_status)77;
    return does && strcmp(does, function) == 0 ? RWS_BAD_INPUT : RWS_OK;
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    const char *does = rws_setup_text(s, "does");
    (void)random, (void)err;
    rws_setup_field(s, "x", 1);
    if (strcmp(does, "crash") != 0 && (*state = rws_setup_alloc(s, strlen(does) + 1))) strcpy(*state, does);
    return outcome(does, "setup");
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = 0;
    return outcome(state, "data");
}

static rws_status em(const void *state, int n_fresh, rws_random *random, rws_error *err)
{
    (void)n_fresh, (void)random, (void)err;
    return outcome(state, "em");
}

static rws_status read_text(const void *state, const char *text, float *const *fields, rws_error *err)
{
    (void)err;
    fields[0][0] = strtof(text, NULL);
    return outcome(state, "read");
}

static rws_status see(const void *state, const rws_grey *picture, float *const *fields, rws_error *err)
{
    (void)picture, (void)fields, (void)err;
    return outcome(state, "see");
}

static rws_status posterior(const void *state, const float *const *fields, rws_teller *tell, void *context,
                            double *log_evidence, rws_error *err)
{
    (void)fields, (void)tell, (void)context, (void)err;
    *log_evidence = strtod("nan", NULL);
    return outcome(state, "posterior");
}

static rws_status measure(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)e, (void)err;
    *value = 1;
    return outcome(state, "measure");
}

static void guide(rws_path *path, const void *state)
{
    const char *const volatile nothing = state;
    rws_flip(path, "choice", rws_constant(path, nothing[0] ? 0 : 1));
    rws_flip(path, "choice", rws_constant(path, 0));
    rws_flip(path, "once", rws_constant(path, 0));
}

/* The word tells which reports there are: s the datum as a text, t another text, v a number, l a large vector. */
static void say(rws_path *path, const char *word, int heads)
{
    if (strchr(word, 's')) rws_report_text(path, "seen", "3");
    if (strchr(word, 't')) rws_report_text(path, "text", heads ? "heads" : "tails");
    if (strchr(word, 'v')) rws_report(path, "value", rws_constant(path, (float)heads));
    if (strchr(word, 'l')) rws_report(path, "large", rws_zeros(path, LARGE));
}

static void loop(void)
{
    static volatile int executions;
    if (++executions < 2000) return;
    for (volatile bool endless = true; endless;) continue;
}

static void model(rws_path *path, const void *state)
{
    if (state && strcmp(state, "loops") == 0) loop();
    const int heads = rws_flip(path, "choice", rws_constant(path, 0));
    rws_flip(path, "choice", rws_constant(path, 0));
    rws_flip(path, "once", rws_constant(path, 0));
    rws_normal(path, "x", rws_constant(path, 0), rws_constant(path, 1));
    if (state && strncmp(state, "says ", 5) == 0) say(path, (const char *)state + 5, heads);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "crasher",
    .settings = (const rws_setting[]){{"does", "crash", 0, 0, "what it does"}, {0}},
    .metrics = (const rws_metric[]){{"measured", "1", measure}, {0}},
    .defaults = {.batch = 2, .particles = 2, .iterations = 2, .n_test = 2},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
    .em = em,
    .read = read_text,
    .posterior = posterior,
    .see = see,
};
