/* schedule.c - libFuzzer harness for learning rates: whatever the text, it is refused with a message, or the rates of every
 * group are finite and not negative at every iteration, and the schedule agrees with itself. */
#include "bytes.h"
#include "optim/schedule.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error    err = {""};
    rws_schedule s;
    char        *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (rws__schedule_parse(text, &s, &err) == RWS_OK) {
        for (int g = 0; g < RWS_GROUPS; g++) {
            const rws_rates *r = &s.rates[g];
            uint64_t         at[3 * RWS_MAX_SCHEDULE_CHANGES + 2] = {0, UINT64_MAX};
            int              n = 2;
            for (int i = 0; i < r->n_changes; i++) {
                if (r->change[i].from > r->change[i].to) abort();
                at[n++] = r->change[i].from, at[n++] = r->change[i].to;
                at[n++] = r->change[i].from + (r->change[i].to - r->change[i].from) / 2;
            }
            for (int i = 0; i < n; i++) {
                const float rate = rws__schedule_at(&s, (rws_group)g, at[i]);
                if (!isfinite(rate) || rate < 0) abort();
            }
        }
        if (!rws__schedule_agree(&s, &s, UINT64_MAX)) abort();
        if (rws__schedule_cover(&s, (1u << RWS_GROUPS) - 1, text, &err) != RWS_OK) bytes_check_refusal(&err, NULL);
    } else {
        bytes_check_refusal(&err, NULL);
    }
    free(text);
    return 0;
}
