/* tree.h - parse trees from their bracketed text, "(S (NP stars) (VP shine))": in a picture, or on a terminal.
 *
 *     text of a tree -> [tree] -> PNG, SVG or PDF; FILE
 *
 * It draws whatever is in brackets and knows no grammar. Everything passed in belongs to the caller and is only read.
 */
#ifndef RWS_FIGURE_TREE_H
#define RWS_FIGURE_TREE_H

#include "rws.h"

#include <stdio.h>

typedef struct {
    const char *text;
    const char *caption; /* below the tree: its probability, say; may have several lines; NULL for none */
    const char *method;  /* whose colour its words have; NULL: ink */
} rws_tree_item;

/* Trees side by side, in as many rows as it takes. */
typedef struct {
    const char          *title; /* NULL for none */
    const rws_tree_item *items;
    int                  n;
    double               width, dpi; /* as in chart.h; the page grows with a tree that is wider */
} rws_trees;

/* Writes the trees to the path, which ends in .png, .svg or .pdf. Fails with RWS_BAD_INPUT if the ending is another, a
 * text is not a tree of at most RWS_TREE_DEEPEST levels, or the file cannot be written; a file that was there is then
 * untouched. */
enum { RWS_TREE_DEEPEST = 400 };
rws_status rws_trees_draw(const rws_trees *trees, const char *path, rws_error *err) __attribute__((warn_unused_result));

/* Writes a tree as lines: from the top down if it fits into so many columns, else from left to right, one line for each
 * node. With Unicode's box lines, or ASCII. A text that is not a tree is written as it is. The file stays open, and
 * whether it took everything is for its owner to ask. */
void rws_tree_print(const char *text, int columns, bool unicode, FILE *file);

/* The words at the leaves, with blanks between. Writes like snprintf: returns the length of the whole text, of which at
 * most room - 1 bytes are written. The text of something that is not a tree has no words. */
size_t rws_tree_words(const char *text, char *words, size_t room);

#endif
