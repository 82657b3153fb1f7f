/* version.c - which library this is. */
#include "rws.h"

const char *rws_version(void)
{
    return RWS_VERSION_STRING;
}
