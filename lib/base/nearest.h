/* nearest.h - the name that a misspelt one was probably meant to be, for messages.
 *
 *     rws_nearest near = rws__nearest_to(name);
 *     for (…) rws__nearest_try(&near, candidate);
 *     rws_fail(err, …, "There is no field \"%s\"%s.", name, rws__nearest_hint(&near).text);
 */
#ifndef RWS_BASE_NEAREST_H
#define RWS_BASE_NEAREST_H

typedef struct {
    const char *name, *best; /* best: NULL if no candidate is near enough */
    int         distance; /* of the best: four times the letters that differ; one in the other case counts a quarter */
} rws_nearest;

typedef struct {
    char text[160];
} rws_nearest_text;

rws_nearest rws__nearest_to(const char *name); /* NULL is near to nothing */
void        rws__nearest_try(rws_nearest *n, const char *candidate);

/* " (did you mean \"x\"?)" for behind the name; empty if nothing is near. */
rws_nearest_text rws__nearest_hint(const rws_nearest *n);

#endif
