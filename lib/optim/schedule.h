/* schedule.h - the learning rate of each parameter group as a function of the iteration.
 *
 * A schedule is read once from the text of an option and evaluated every iteration. It does not know which optimiser
 * its rates are for.
 *
 *     option text -> [schedule] -> rate of a group -> optimiser
 *
 * The text is a rate for all groups, then changes separated by commas, in order of iteration:
 *
 *     1e-3                           constant
 *     1e-5,400000:/3,1000000:/3      divided by 3 after 400000 iterations and again after 1000000
 *     1e-3,5000:*0.5                 multiplied
 *     1e-3,5000:1e-4                 set to a rate
 *     0,0-1000:1e-3                  a straight line from the rate held at iteration 0 to 1e-3 at iteration 1000
 *     1e-3,2000-9000:/10             a straight line to a tenth
 *
 * The name of a group (theta, phi, control, baseline) and an equals sign begin the rates of that group; the changes
 * that follow belong to it until the next name:
 *
 *     theta=0,phi=1e-3               theta does not move
 *     theta=1e-3,5000:/3,phi=1e-4    theta is divided by 3 after 5000 iterations; phi is constant
 *     1e-3,100:/2,phi=1e-4           phi is constant at 1e-4; theta has 1e-3 and its change
 *
 *     text   = rates | [rates ","] name "=" rates {"," name "=" rates}
 *     rates  = rate {"," change}
 *     change = iteration ["-" iteration] ":" (rate | "/" factor | "*" factor)
 *
 * A group that is not named has the rates before the first name; control and baseline, if not named, have the rates of
 * phi. Spaces around a comma are allowed. Rates are finite and not negative; factors are finite and above 0.
 */
#ifndef RWS_OPTIM_SCHEDULE_H
#define RWS_OPTIM_SCHEDULE_H

#include "rws.h"

enum { RWS_MAX_SCHEDULE_CHANGES = 16 };

/* The rates of one group. Invariant: from <= to within a change, to <= the next change's from (below it, if both
 * changes are sudden). */
typedef struct {
    double start;
    int    n_changes;
    struct {
        uint64_t from, to; /* equal for a sudden change */
        double   rate;     /* held from iteration `to` on */
    } change[RWS_MAX_SCHEDULE_CHANGES];
} rws_rates;

typedef struct {
    rws_rates rates[RWS_GROUPS];
    unsigned  groups; /* bit g: the text gives group g rates */
} rws_schedule;

/* Reads the text into *out, which owns no memory. RWS_BAD_INPUT with a message that quotes the text and says what is
 * wrong; *out is then as it was. */
rws_status rws__schedule_parse(const char *text, rws_schedule *out, rws_error *err) __attribute__((warn_unused_result));

/* RWS_OK if every group in `groups` (bit g: group g has parameters) has rates, else RWS_BAD_INPUT with a message that
 * quotes the text and names the group. */
rws_status rws__schedule_cover(const rws_schedule *s, unsigned groups, const char *text, rws_error *err)
    __attribute__((warn_unused_result));

/* The rate of a group for a step that `iteration` steps came before: the first is 0, and a change "400000:/3" holds
 * from the step after the 400000th. 0 for a group without rates. Cannot fail. */
float rws__schedule_at(const rws_schedule *s, rws_group group, uint64_t iteration);

/* Whether every group that has rates in both schedules has the same rates for the first n steps. */
bool rws__schedule_agree(const rws_schedule *a, const rws_schedule *b, uint64_t n);

#endif
