/* question.h - from the JSON body of a request to questions for a posterior.
 *
 *     {"text": "stars saw ears"}                                 read by the model
 *     {"picture": {"wide": 50, "high": 50, "grey": [0, …]}}      seen by the model
 *     {"fields": {"x": 0.3, "y": [1, 2]}}                        the numbers of each field; a series is a list of items
 *     {"test": 7}                                                a test datum
 *     {"data": [ … ]}                                            many of these
 *
 * with "particles", "seed", "refine", "top" (answers in the reply), "particles_listed", "marginals" and "given" (choices that
 * are known); for a score with "choices"; for a calibration "simulations", "particles", "seed" and "refine" alone.
 * This file knows no model; it gets the fields.
 */
#ifndef RWS_SERVE_BODY_H
#define RWS_SERVE_BODY_H

#include "rws_train.h"

#include <jansson.h>

typedef struct {
    int    particles; /* of one datum */
    int    data;      /* in a request */
    double work;      /* particles of all data together */
    int    samples;
} rws_body_limits;

/* One datum. */
typedef struct {
    rws_question  question; /* particles and seed are set too */
    rws_grey      picture;
    float        *numbers;
    const float **fields;
} rws_body_datum;

typedef struct {
    rws_body_datum *data;
    int             n_data;
    bool            many;                            /* as "data": the reply is a line per datum */
    int             particles, refine, top, samples; /* samples: or simulations */
    uint64_t        seed;
    bool            listed, marginals;
    rws_choice     *choices; /* of a score, or given for a question */
    int             n_choices;
    json_t         *document; /* owns the texts of the questions */
} rws_body;

typedef enum { RWS_BODY_INFER, RWS_BODY_SAMPLE, RWS_BODY_SCORE, RWS_BODY_CALIBRATE } rws_body_kind;

/* RWS_BAD_INPUT with a message that names the key. The caller releases *out, also after a failure. */
rws_status rws__body_read(const char *body, size_t n, rws_body_kind kind, const rws_field *fields, int n_fields,
                          const rws_body_limits *limits, rws_body *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads one datum of a list "data"; an object without a key that says how it is given has fields: {"x": 0.3}. */
rws_status rws__body_read_datum(const char *text, size_t n, const rws_field *fields, int n_fields,
                                const rws_body_limits *limits, rws_body *out, rws_error *err)
    __attribute__((warn_unused_result));
void rws__body_release(rws_body *p);

#endif
