/* fiber.h - a function call that can be put aside half-way and taken up again.
 *
 * The engine gives each path a fiber: the path runs until it needs a value, yields to the scheduler, and is
 * resumed where it stood once the value is there. A fiber is a stack and a saved stack pointer; it does not schedule,
 * has no queue, and knows nothing of what runs on it.
 *
 *     scheduler  --resume-->  entry(arg) ... --yield-->  scheduler  --resume-->  ... entry returns  -->  scheduler
 *
 * Life:   new ---start---> armed ---resume---> running ---return---> done ---start---> armed ...
 *                            ^                  |   ^
 *                            |            yield |   | resume
 *                            |                  v   |
 *                            +------start----- put aside      (abandoned: what stood on the stack is forgotten)
 *
 * Threads: a fiber may be resumed by another thread than before, never by two at once; handing it over needs the same
 * synchronisation as handing over any memory. Code on a fiber must not keep the address of a thread-local (errno is
 * one) across a yield, because another thread may resume it.
 *
 * Floating-point control (rounding, flush-to-zero: MXCSR and the x87 control word, FPCR) is not part of a fiber: it
 * runs with that of the thread that resumes it, and must leave it as it found it.
 */
#ifndef RWS_BASE_FIBER_H
#define RWS_BASE_FIBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rws_fiber rws_fiber;

/* A fiber with a stack of at least stack_bytes, which the system commits page by page as it is first touched; below it
 * lies a guard of 8 MB of address space, so that an overflow faults and harms no neighbour. Done until it is started.
 * NULL when memory, or the process's number of mappings (two a fiber), is exhausted. Free with rws__fiber_free.
 */
rws_fiber *rws__fiber_new(size_t stack_bytes);

/* Sets the function for an overflow of the fiber's stack: everything on the stack is abandoned, and overflow(arg), with the
 * arg of rws__fiber_start, is called on the empty stack. It must not return: it yields for good. NULL, which a new fiber
 * has, leaves the fault to the handler that was there before. Needs rws__fiber_thread on the thread that resumes it.
 *
 * Overflows are seen by a handler of SIGSEGV, on a stack for signals; other faults go to the handler that was there
 * when it was installed. A function that was interrupted while it held a lock (malloc, printf) holds it forever. */
void rws__fiber_on_overflow(rws_fiber *f, void (*overflow)(void *arg));

/* Prepares the calling thread for rws__fiber_on_overflow: gives it a stack for signals unless it has one, which the
 * thread's exit frees; and, if `install`, installs the handler unless it is the first to be called already, for which it
 * needs a system call. Without memory for such a stack, an overflow on this thread ends the process. */
void rws__fiber_thread(bool install);

/* Its stack, from the lowest address on: how much is left is the distance of the stack pointer from there.
 * bytes may be NULL. */
char *rws__fiber_stack(const rws_fiber *f, size_t *bytes);

/* Gives the stack back, whether the fiber is done or put aside half-way; not while it runs. NULL is allowed. */
void rws__fiber_free(rws_fiber *f);

/* Arms the fiber: the next resume enters entry(arg). One that is put aside half-way is abandoned: nothing on its stack
 * is cleaned up, so nothing there may own memory or locks. Allocates nothing, cannot fail.
 */
void rws__fiber_start(rws_fiber *f, void (*entry)(void *arg), void *arg);

/* Runs an armed or put-aside fiber until it yields or its entry returns. Call it on a thread's own stack: fibers are
 * not nested.
 */
void rws__fiber_resume(rws_fiber *f);

/* Called on the running fiber f: goes back to its resumer, and returns when f is resumed again. */
void rws__fiber_yield(rws_fiber *f);

/* True when it stands before its first instruction: the next resume enters its entry. */
bool rws__fiber_armed(const rws_fiber *f);

/* True when there is nothing to resume: the entry has returned, or the fiber was never started. */
bool rws__fiber_done(const rws_fiber *f);

#endif
