/* screen.h - the width of a terminal, and whether it shows Unicode. */
#ifndef RWS_RWS_SCREEN_H
#define RWS_RWS_SCREEN_H

#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The columns of the terminal, else $COLUMNS, else 80. */
static inline int rws__screen_columns(int fd)
{
    struct winsize size;
    const char    *columns = getenv("COLUMNS");
    int            width = 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width <= 0 && columns) width = atoi(columns);
    return width > 0 ? width : 80;
}

/* The columns and rows that a table on stdout has; 0: no end, in a file where $COLUMNS says nothing else. */
static inline int rws__screen_table(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 || getenv("COLUMNS") ? rws__screen_columns(STDOUT_FILENO) : 0;
}
static inline int rws__screen_rows(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

/* Sets the character set of the program from its locale, and nothing else of it: numbers keep their decimal point. */
static inline bool rws__screen_unicode(void)
{
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

#endif
