/* setting.c - settings that are one of some words. */
#include "models/model.h"

#include <string.h>

rws_status rws__setting_word(rws_setup *s, const char *name, const char *const *words, int *which, rws_error *err)
{
    const char *text = rws_setup_text(s, name);
    for (*which = 0; words[*which]; ++*which)
        if (strcmp(words[*which], text) == 0) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s is %s or %s%s%s, not \"%s\".", name, words[0], words[1],
                    words[2] ? " or " : "", words[2] ? words[2] : "", text);
}

rws_status rws__setting_either(rws_setup *s, const char *name, const char *no, const char *yes, bool *out,
                               rws_error *err)
{
    int              which;
    const rws_status status = rws__setting_word(s, name, (const char *[]){no, yes, NULL}, &which, err);
    *out = which == 1;
    return status;
}
