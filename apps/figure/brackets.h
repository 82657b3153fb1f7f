/* brackets.h - trees in brackets, "(S (NP stars) (VP shine))": their nodes, a place for each, and lines on a terminal.
 *
 * The first name in a pair of brackets is a symbol, and the rest of the pair is below it; a name without brackets is a
 * word. This file knows no grammar and draws no picture.
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
    int    parent, depth; /* -1 and 0 for the root */
    int    size, n_below; /* nodes of the subtree, with this one; children */
    double width, x;      /* width of the label, set by the caller of rws__brackets_place; its middle */
} rws_bracket;

/* Nodes in pre-order: the nodes below i are i + 1 … i + size - 1. */
typedef struct {
    rws_bracket *nodes;
    int          n, n_levels;
    double       width; /* of the whole tree */
} rws_brackets;

/* Returns false, with nothing to release, if the text is not one tree. */
bool rws__brackets_read(const char *text, rws_brackets *out) __attribute__((warn_unused_result));
void rws__brackets_release(rws_brackets *b);

/* Finds a place for every label, from 0 to `width`, with a gap between neighbours; if `whole`, labels begin at whole
 * numbers. Time n * n_levels. */
void rws__brackets_place(rws_brackets *b, double gap, bool whole);

/* Writes a tree as lines: from the top down if it fits into so many columns, else from left to right, one line for each
 * node. With Unicode's box lines, or ASCII. A text that is not a tree is written as it is. The file stays open;
 * the caller checks it for errors. */
void rws__brackets_print(const char *text, int columns, bool unicode, FILE *file);

#endif
