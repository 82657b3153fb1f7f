/* page.h - the files of the page, which are part of the program (embed.sh makes the table at build time). */
#ifndef RWS_SERVE_PAGE_H
#define RWS_SERVE_PAGE_H

#include <stddef.h>

typedef struct {
    const char *name, *type; /* "app.js", "text/javascript" */
    const char *bytes, *end;
} rws_page_file;

/* Every file, the last has name NULL. index.html is the page itself. */
extern const rws_page_file rws_page_files[];

#endif
