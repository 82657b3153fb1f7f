/* crash.h - a program that crashes says where: most crashes are mistakes in a user's shared object. */
#ifndef RWS_RWS_CRASH_H
#define RWS_RWS_CRASH_H

/* From now on a segmentation fault and its relatives print a message before they end the process. Handlers that are
 * there already, such as those of a sanitizer, stay. */
void rws__crash_explain(void);

#endif
