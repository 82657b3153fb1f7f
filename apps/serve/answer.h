/* answer.h - answers and samples of a posterior as JSON.
 *
 *     rws_answers, rws_samples -> [answer] -> reply
 */
#ifndef RWS_SERVE_ANSWER_H
#define RWS_SERVE_ANSWER_H

#include "rws_train.h"
#include "serve/buffer.h"
#include "serve/body.h"

/* An object with the evidence, the answers (posed->top of them), and, if asked for, the particles and the marginals.
 * Reports, values and choices are written as by `rws infer --json`. */
void rws_answer_write(const rws_answers *a, const rws_body *posed, rws_buffer *out);

/* A sample: its reports, its fields (unless it reports a text) and, if `choices`, its choices. */
void rws_sample_write(const rws_posterior *p, const rws_sample *s, bool choices, rws_buffer *out);

#endif
