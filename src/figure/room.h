/* room.h - whether there is memory for Pango, Fontconfig and Cairo.
 *
 * These libraries end the program where memory or threads are missing, some with a signal. So both are looked for before
 * the first picture: what was found then is still there a moment later, unless the system is at its very end.
 */
#ifndef RWS_FIGURE_ROOM_H
#define RWS_FIGURE_ROOM_H

#include "rws.h"

/* RWS_NO_MEMORY with a sentence if a picture cannot be drawn. Looks once in the life of the process. */
rws_status rws_figure_room(rws_error *err) __attribute__((warn_unused_result));

#endif
