/* choices.c - libFuzzer harness for choices as a user types them (--given z=2,NP:1=0): whatever the text, it is refused with
 * a message, or every choice has a site, a visit from 0 on, and finite numbers. */
#include "bytes.h"
#include "rws/given.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error      err = {""};
    rws_given_list list = {0};
    char          *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (rws__given_list_add(&list, text, &err) != RWS_OK) bytes_check_refusal(&err, NULL);
    for (int i = 0; i < list.n; i++) {
        if (!list.list[i].site || !*list.list[i].site || list.list[i].visit < 0 || list.list[i].dim < 1) abort();
        for (int k = 0; k < list.list[i].dim; k++)
            if (!isfinite(list.list[i].value[k])) abort();
    }
    rws__given_list_release(&list);
    free(text);
    return 0;
}
