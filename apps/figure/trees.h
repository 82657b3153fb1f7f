/* trees.h - parse trees, side by side, each with a caption.
 *
 * Takes trees as text, "(S (NP stars) (VP (V saw) (NP ears)))", as in stores and answers.
 *
 *     snapshots, answers -> brackets -> [trees] -> PNG, SVG or PDF
 *
 * All arguments belong to the caller and are only read.
 */
#ifndef RWS_FIGURE_TREES_H
#define RWS_FIGURE_TREES_H

#include "rws.h"

typedef struct {
    const char *text;
    const char *caption; /* above it: "0.57"; NULL for none */
    const char *method;  /* whose colour the words have; NULL: grey */
} rws_drawn_tree;

typedef struct {
    const char           *title; /* NULL for none */
    const rws_drawn_tree *trees;
    int                   n_trees;    /* from left to right, then in the next row */
    double                width, dpi; /* as in chart.h */
} rws_trees;

/* Writes the trees to the path, which ends in .png, .svg or .pdf. A tree that is wider than the page is drawn smaller.
 * Fails with RWS_BAD_INPUT if the ending is another, a text is not that of a tree, or the file cannot be written; a
 * file that was there is then untouched. */
rws_status rws__trees_draw(const rws_trees *trees, const char *path, rws_error *err);

/* The words at the leaves, with blanks between. Writes like snprintf: returns the length of the whole text, of which at
 * most size - 1 bytes are written. A text that is not a tree has no words. */
size_t rws__trees_words(const char *text, char *words, size_t size);

#endif
