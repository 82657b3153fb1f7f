/* screen.h - what can be written on a stream: how many columns wide, and whether beyond ASCII. */
#ifndef RWS_CLI_SCREEN_H
#define RWS_CLI_SCREEN_H

#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Of the terminal, else $COLUMNS, else 80. */
static inline int rws_screen_columns(int fd)
{
    struct winsize size;
    int            width = 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width <= 0 && getenv("COLUMNS")) width = atoi(getenv("COLUMNS"));
    return width > 0 ? width : 80;
}

/* Changes the character set of the program and nothing else of its locale: numbers keep their point. */
static inline bool rws_screen_unicode(void)
{
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

#endif
