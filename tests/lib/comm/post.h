/* post.h - a carrier (comm/carrier.h) for ranks that a test forks: messages lie in memory that the processes share.
 *
 * The program is linked with post.c and the flags -Wl,--wrap=dlopen, dlsym and dlclose, by which comm.c finds this
 * carrier in the place of one of an MPI.
 *
 *     post_office_open -> fork: post_office_join, rws_ranks_open, … -> post_office_close
 */
#ifndef RWS_TESTS_POST_H
#define RWS_TESTS_POST_H

#include <stdbool.h>

/* For jobs of so many ranks. Messages of an earlier job are gone. */
void post_office_open(int n_ranks);
void post_office_close(void);

/* Makes this process a rank. `joined`, unless it is NULL, is called when rws_ranks_open has joined the others. */
void post_office_join(int rank, void (*joined)(void));

/* Whether a message was received in the place of one of another size: the ranks were not in step. */
bool post_office_confused(void);

#endif
