/* asking.c - questions to a trainer's present parameters, and the fields of a question. */
#include "ask/ask.h"
#include "ask/posterior.h"
#include "train/trainer.h"

rws_status rws_trainer_ask(rws_trainer *t, const rws_question *question, rws_answers **out, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    return rws__program_ask(&t->program, t->engines[0], t->test, question, out, err);
}

bool rws_trainer_field(const rws_trainer *t, int i, rws_field *out)
{
    return t && rws__program_field(&t->program, i, out);
}

rws_status rws_posterior_new(const rws_trainer *t, rws_posterior **out, rws_error *err)
{
    RWS_NEED(t, err);
    return rws__posterior_copy(&t->program, out, err);
}
