/* linked.c - a program that is linked with the installed library, C and C++ alike: is it the one of the header? */
#include <rws.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    rws_error        err;
    const rws_status status = rws_fail(&err, RWS_BAD_INPUT, "rws %s", rws_version());
    puts(err.text);
    return status == RWS_BAD_INPUT && strcmp(rws_version(), RWS_VERSION_STRING) == 0 ? 0 : 1;
}
