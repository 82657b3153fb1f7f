/* fault.h - what the fibers (fiber.c) and the handler of SIGSEGV (fault.c) share. */
#ifndef RWS_BASE_FAULT_H
#define RWS_BASE_FAULT_H

#include "base/fiber.h"

/* Data of a thread for the handler. */
typedef struct {
    rws_fiber *running;
    void      *alternate; /* its stack for signals, if it is ours */
} rws_fault_state;

extern _Thread_local rws_fault_state rws_fault_thread __attribute__((visibility("hidden")));

/* Called by the handler for a fault at the address `at`. True if that is the guard of the fiber's stack: the interrupted thread
 * continues in the function for overflows, with an empty stack, when the handler returns. */
bool rws__fiber_catch(rws_fiber *f, const char *at, void *context);

#endif
