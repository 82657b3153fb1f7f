/* bundle.h - which runs make a curve: runs that agree in their configuration, up to their seed.
 *
 * Runs are compared by each key in which some of them differ; a run that lacks a key does not make others differ in it.
 * A curve has a label with the method and those keys, and a shade of the method's colour, so that runs of two methods
 * are never one curve. This file does not draw, and does not read the runs' numbers.
 *
 *     runs -> [bundle] -> rws plot, comparisons of rws serve
 */
#ifndef RWS_FIGURE_BUNDLE_H
#define RWS_FIGURE_BUNDLE_H

#include "base/arena.h"
#include "rws_results.h"

typedef struct {
    const char *const *leave;  /* further keys that make no curve of their own, ends with NULL; NULL: none */
    const char        *panel;  /* a key that is named in `panel` instead of the label; NULL: none */
    int                most;   /* bundles */
    const char        *advice; /* where more are told: "--where, such as --where method=ww" */
} rws_bundle_options;

typedef struct {
    const char        *method;        /* NULL if the runs have none */
    const char *const *values;        /* of the keys of the bundles; NULL where the runs have none */
    int                n_runs, first; /* the place of the first run */
    char               label[256];    /* "WW, K = 5, lr = 0.001"; the name of the first run in the place of no method */
    char               panel[256];    /* "K = 5", or empty */
    double             shade;         /* how much white is in the method's colour: 0 for its last bundle in a panel */
} rws_bundle;

/* The keys and the runs must live as long. */
typedef struct {
    const char **keys; /* in which the runs differ */
    int          n_keys;
    rws_bundle  *list; /* by panel, then in the order of a legend */
    int          n;
    int         *of; /* the bundle of each run */
    rws_arena    memory;
} rws_bundles;

/* For a walk over runs: whether this one has another value of the key than *value, which is NULL at first and becomes the
 * value of the first run that has the key. A run that lacks the key, such as the setting of another method, does not
 * differ in it. */
bool rws__bundle_departs(const rws_result *run, const char *key, const char **value);

/* Whether two of the runs have different values of the key. */
bool rws__bundle_differs(const rws_result *const *runs, int n, const char *key);

/* RWS_BAD_INPUT if there are more than options->most bundles, RWS_NO_MEMORY. The caller releases *out, also after a
 * failure. */
rws_status rws__bundles_make(const rws_result *const *runs, int n, const rws_bundle_options *options, rws_bundles *out,
                             rws_error *err) __attribute__((warn_unused_result));
void       rws__bundles_release(rws_bundles *g); /* a zeroed one is allowed */

#endif
