/* brackets.h - trees in brackets, "(S (NP stars) (VP shine))": their nodes, a place for each, and lines on a terminal.
 *
 * What is in brackets is a symbol over what follows it, what is not is a word. It knows no grammar and no picture.
 *
 *     text of a tree -> [brackets] -> trees; FILE
 */
#ifndef RWS_FIGURE_BRACKETS_H
#define RWS_FIGURE_BRACKETS_H

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    char  *label;
    bool   word;
    int    parent, depth; /* the root's are -1 and 0 */
    int    size, n_below; /* of the subtree, itself included; children */
    double width, x;      /* of the label, which whoever places must fill in; its middle */
} rws_bracket;

/* Nodes in pre-order: those below i are i + 1 … i + size - 1. */
typedef struct {
    rws_bracket *nodes;
    int          n, n_levels;
    double       width; /* of all */
} rws_brackets;

/* Returns false, with nothing to release, if the text is not one tree. */
bool rws_brackets_read(const char *text, rws_brackets *out) __attribute__((warn_unused_result));
void rws_brackets_release(rws_brackets *b);

/* Finds a place for every label, from 0 to `width`, with a gap between neighbours; if `whole`, labels begin at whole
 * numbers. Time n * n_levels. */
void rws_brackets_place(rws_brackets *b, double gap, bool whole);

/* Writes a tree as lines: from the top down if it fits into so many columns, else from left to right, one line for each
 * node. With Unicode's box lines, or ASCII. A text that is not a tree is written as it is. The file stays open, and
 * whether it took everything is for its owner to ask. */
void rws_brackets_print(const char *text, int columns, bool unicode, FILE *file);

#endif
