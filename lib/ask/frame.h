/* frame.h - a table of many answers, cell by cell: for readers of rows that were written before.
 *
 *     rws_answers -> [frame] -> CSV, dict of arrays
 */
#ifndef RWS_ASK_FRAME_H
#define RWS_ASK_FRAME_H

#include "rws_train.h"

/* Begins a row. All further cells belong to it. */
bool rws__frame_begin(rws_frame *f);

/* Sets a cell of the row; a column that is new is made. False without memory, or if the column has cells of the other kind. */
bool rws__frame_number(rws_frame *f, const char *column, double value);
bool rws__frame_text(rws_frame *f, const char *column, const char *value);

#endif
