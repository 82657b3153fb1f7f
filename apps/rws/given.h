/* given.h - choices as a user types them: site=value, or site:visit=value, separated by commas.
 *
 *     --given z=2,NP:1=0,'where=0.1 0.2' -> [given] -> rws_question.given
 */
#ifndef RWS_RWS_GIVEN_H
#define RWS_RWS_GIVEN_H

#include "rws.h"

/* A growing list with memory of its own; a zeroed one is valid and empty. */
typedef struct {
    rws_choice *list;
    int         n;
} rws_given_list;

/* Adds the choices of a text. RWS_BAD_INPUT with a message that names what is not a choice. */
rws_status rws__given_list_add(rws_given_list *l, const char *text, rws_error *err) __attribute__((warn_unused_result));
void       rws__given_list_release(rws_given_list *l);

#endif
