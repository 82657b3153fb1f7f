#include "base/fiber.h"

#include "base/error.h"
#include "base/fault.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Three tools must be told what fibers do: AddressSanitizer which stack is in use, ThreadSanitizer which fiber runs,
 * valgrind which memory is a stack. The code for a tool is empty unless the program is built for it.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif

#if FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(start, end) 0
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#endif

#if !defined(RWS_FIBER_UCONTEXT) && defined(__ELF__) && defined(__LP64__) && \
    (defined(__x86_64__) || defined(__aarch64__))
#define FIBER_ASM 1
#else
#include <fenv.h>
#endif

/* Frames are several times larger under AddressSanitizer. A larger stack costs memory only where it is touched. */
#if FIBER_ASAN
#define STACK_SCALE 4
#else
#define STACK_SCALE 1
#endif

/* A guard is address space only. A frame with a large array may step over a small guard into another fiber's stack; as
 * many bytes as a thread's usual stack has are enough for every array that works on a thread. */
#define GUARD ((size_t)8 << 20)
#define HUGE_PAGE ((size_t)2 << 20) /* a larger stack must not be committed by huge pages */

typedef enum { DONE, ARMED, RUNNING, ASIDE } fiber_state;

/*  map      stack                               stack + stack_bytes
 *   | guard | <- grows down ........ first frame | 0 ... 63 cache lines unused |
 *
 * Mappings are whole pages at equal distances, so the hot ends of the stacks would all lie in the same few cache sets,
 * and at an even number of pages in half of the TLB's. Hence the unused lines, a different number for each fiber, and
 * an odd number of pages: at 1000 fibers a switch took 7 ns with both, 11 ns without the unused lines, 17 ns without
 * the odd number (stacks of 256 KB). */
struct rws_fiber {
#if FIBER_ASM
    void *sp;         /* where the fiber stands, while it does not run */
    void *resumer_sp; /* where its resumer stands, while it does */
#else
    ucontext_t context, resumer;
    fenv_t     control; /* the resumer's floating-point control: a ucontext has its own, a fiber has not */
#endif
    fiber_state state;
    void (*entry)(void *arg);
    void (*overflow)(void *arg);
    void    *arg;
    char    *map, *stack;
    size_t   map_bytes, stack_bytes;
    unsigned valgrind_id;
#if FIBER_ASAN
    void       *fake, *resumer_fake; /* the stacks on which ASan keeps locals to catch their use after return */
    const void *resumer_stack;
    size_t      resumer_stack_bytes;
#endif
#if FIBER_TSAN
    void *tsan, *resumer_tsan;
#endif
};

/* ---- The switch: what stands between resume and yield -------------------------------------------------------- */

static void fiber_main(void *arg);

#if FIBER_ASM

void rws_fiber_switch(void **save, void *to); /* fiber_switch.S */
void rws_fiber_boot(void);

/* Lays out the frame that the first switch to f pops; the stack pointer is 16-aligned when boot is reached. */
static void arm(rws_fiber *f)
{
    uintptr_t *top = (uintptr_t *)(f->stack + f->stack_bytes);
#if defined(__x86_64__)
    /* r15 r14 r13 r12 rbx rbp return-address, then two words of zero where a caller of boot would be */
    uintptr_t *frame = top - 9;
    for (int i = 0; i < 9; i++) frame[i] = 0;
    frame[3] = (uintptr_t)f;
    frame[4] = (uintptr_t)fiber_main;
    frame[6] = (uintptr_t)rws_fiber_boot;
#else
    /* x29 x30 x19 ... x28 d8 ... d15 */
    uintptr_t *frame = top - 20;
    for (int i = 0; i < 20; i++) frame[i] = 0;
    frame[1] = (uintptr_t)rws_fiber_boot;
    frame[2] = (uintptr_t)fiber_main;
    frame[3] = (uintptr_t)f;
#endif
    f->sp = frame;
}

static inline void jump_in(rws_fiber *f)
{
    rws_fiber_switch(&f->resumer_sp, f->sp);
}

static inline void jump_out(rws_fiber *f)
{
    rws_fiber_switch(&f->sp, f->resumer_sp);
}

static inline void jumped_in(rws_fiber *f)
{
    (void)f;
}

#else

/* makecontext passes ints: the pointer travels as two halves. */
static rws_fiber *fiber_of(unsigned high, unsigned low)
{
    return (rws_fiber *)(uintptr_t)((uint64_t)high << 32 | low);
}

/* Makes a context that enters boot(f) with an empty stack. */
static void make_context(ucontext_t *context, rws_fiber *f, void (*boot)(unsigned high, unsigned low))
{
    RWS_CHECK(getcontext(context) == 0);
    context->uc_stack.ss_sp = f->stack;
    context->uc_stack.ss_size = f->stack_bytes;
    context->uc_link = NULL;
    makecontext(context, (void (*)(void))boot, 2, (unsigned)((uint64_t)(uintptr_t)f >> 32), (unsigned)(uintptr_t)f);
}

static void boot_main(unsigned high, unsigned low)
{
    fiber_main(fiber_of(high, low));
}

static void arm(rws_fiber *f)
{
    make_context(&f->context, f, boot_main);
}

static inline void jump_in(rws_fiber *f)
{
    fegetenv(&f->control);
    RWS_CHECK(swapcontext(&f->resumer, &f->context) == 0);
}

static inline void jump_out(rws_fiber *f)
{
    RWS_CHECK(swapcontext(&f->context, &f->resumer) == 0);
}

static inline void jumped_in(rws_fiber *f)
{
    fesetenv(&f->control);
}

#endif

/* ---- What the tools are told: before and after each switch, and when a stack's contents are forgotten --------- */

static inline void entering(rws_fiber *f)
{
#if FIBER_ASAN
    __sanitizer_start_switch_fiber(&f->resumer_fake, f->stack, f->stack_bytes);
#endif
#if FIBER_TSAN
    f->resumer_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, 0);
#endif
    (void)f;
}

/* Called on the fiber. Its resumer may be another thread each time, so ASan is asked for the resumer's stack each time.
 * */
static inline void entered(rws_fiber *f)
{
#if FIBER_ASAN
    __sanitizer_finish_switch_fiber(f->fake, &f->resumer_stack, &f->resumer_stack_bytes);
#endif
    (void)f;
}

static inline void leaving(rws_fiber *f, bool for_good)
{
#if FIBER_ASAN
    if (for_good) f->fake = NULL;
    __sanitizer_start_switch_fiber(for_good ? NULL : &f->fake, f->resumer_stack, f->resumer_stack_bytes);
#endif
#if FIBER_TSAN
    __tsan_switch_to_fiber(f->resumer_tsan, 0);
#endif
    (void)f, (void)for_good;
}

static inline void left(rws_fiber *f)
{
#if FIBER_ASAN
    __sanitizer_finish_switch_fiber(f->resumer_fake, NULL, NULL);
#endif
    (void)f;
}

/* Forgets the frames on the stack, whether they returned or not. */
#if FIBER_ASAN
__attribute__((no_sanitize_address))
#endif
static void
forget(rws_fiber *f)
{
#if FIBER_ASAN
    if (f->fake) {
        /* Only leaving a fiber for good frees its fake stack: tell ASan that we go there and leave at once. */
        void       *own_fake;
        const void *own_stack;
        size_t      own_bytes;
        __sanitizer_start_switch_fiber(&own_fake, f->stack, f->stack_bytes);
        __sanitizer_finish_switch_fiber(f->fake, &own_stack, &own_bytes);
        __sanitizer_start_switch_fiber(NULL, own_stack, own_bytes);
        __sanitizer_finish_switch_fiber(own_fake, NULL, NULL);
        f->fake = NULL;
    }
    __asan_unpoison_memory_region(f->stack, f->stack_bytes);
#endif
#if FIBER_TSAN
    if (f->tsan) __tsan_destroy_fiber(f->tsan);
    f->tsan = NULL;
#endif
    (void)f;
}

/* ---- A stack that runs over ----------------------------------------------------------------------------------- */

/* Entered from the handler, on a stack whose frames are all abandoned. */
#if FIBER_ASAN
__attribute__((no_sanitize_address))
#endif
static void
overflowed(rws_fiber *f)
{
#if FIBER_ASAN
    __asan_unpoison_memory_region(f->stack, f->stack_bytes);
#endif
    f->overflow(f->arg);
    __builtin_trap(); /* overflow never returns */
}

#if FIBER_ASM

/* Makes the interrupted thread continue in overflowed(f), with an empty stack, when the handler returns. False on a
 * system whose signals this function does not know. */
#if FIBER_ASAN
__attribute__((no_sanitize_address)) /* redirect writes over frames, which are about to be abandoned */
#endif
static bool
redirect(ucontext_t *context, rws_fiber *f)
{
    uintptr_t *top = (uintptr_t *)((uintptr_t)(f->stack + f->stack_bytes - 256) & ~(uintptr_t)15);
#if defined(__x86_64__) && defined(__linux__)
    greg_t *r = context->uc_mcontext.gregs;
    *--top = 0; /* the return address, as after a call; a walk of the stack ends here */
    r[REG_RSP] = (greg_t)(uintptr_t)top;
    r[REG_RBP] = 0;
    r[REG_RDI] = (greg_t)(uintptr_t)f;
    r[REG_RIP] = (greg_t)(uintptr_t)overflowed;
    r[REG_EFL] &= ~(greg_t)0x400; /* the direction flag, which a call leaves clear */
    return true;
#elif defined(__aarch64__) && defined(__linux__)
    context->uc_mcontext.sp = (uintptr_t)top;
    context->uc_mcontext.regs[29] = context->uc_mcontext.regs[30] = 0;
    context->uc_mcontext.regs[0] = (uintptr_t)f;
    context->uc_mcontext.pc = (uintptr_t)overflowed;
    return true;
#else
    (void)context, (void)top;
    return false;
#endif
}

#else

static void boot_overflowed(unsigned high, unsigned low)
{
    overflowed(fiber_of(high, low));
}

/* Leaves the handler for overflowed(f), with an empty stack and the signals that the interrupted thread listened to. */
static bool redirect(const ucontext_t *context, rws_fiber *f)
{
    ucontext_t to;
    make_context(&to, f, boot_overflowed);
    to.uc_sigmask = context->uc_sigmask;
    return setcontext(&to) == 0;
}

#endif

bool rws__fiber_catch(rws_fiber *f, const char *at, void *context)
{
    return f->overflow && at >= f->map && at < f->stack && redirect(context, f);
}

void rws__fiber_on_overflow(rws_fiber *f, void (*overflow)(void *arg))
{
    f->overflow = overflow;
}

char *rws__fiber_stack(const rws_fiber *f, size_t *bytes)
{
    if (bytes) *bytes = f->stack_bytes;
    return f->stack;
}

/* ---- The life of a fiber -------------------------------------------------------------------------------------- */

/* The first C frame on the stack. It is left for good, not returned from: below it there is only boot. */
static void fiber_main(void *arg)
{
    rws_fiber *f = arg;
    jumped_in(f);
    entered(f);
    f->entry(f->arg);
    f->state = DONE;
    leaving(f, true);
    jump_out(f);
    __builtin_trap();
}

rws_fiber *rws__fiber_new(size_t stack_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (stack_bytes > SIZE_MAX / (2 * STACK_SCALE)) return NULL;
    stack_bytes = (stack_bytes * STACK_SCALE + page - 1) / page * page;
    if (stack_bytes == 0) stack_bytes = page;

    rws_fiber *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->state = DONE;
    f->map_bytes = (GUARD + stack_bytes + page) | page; /* pages are a power of two: an odd number of them */
    f->map = mmap(NULL, f->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (f->map == MAP_FAILED) {
        free(f);
        return NULL;
    }
    f->stack = f->map + GUARD;
    if (mprotect(f->stack, f->map_bytes - GUARD, PROT_READ | PROT_WRITE) != 0) {
        munmap(f->map, f->map_bytes);
        free(f);
        return NULL;
    }
    if (stack_bytes >= HUGE_PAGE) madvise(f->stack, f->map_bytes - GUARD, MADV_NOHUGEPAGE);
    f->stack_bytes = f->map_bytes - GUARD - page + (uintptr_t)f / 64 % 64 * 64;
    f->valgrind_id = VALGRIND_STACK_REGISTER(f->stack, f->stack + f->stack_bytes);
#if FIBER_ASAN
    __lsan_register_root_region(f->stack, f->stack_bytes); /* what frames on it point to is not leaked */
#endif
    return f;
}

void rws__fiber_free(rws_fiber *f)
{
    if (!f) return;
    RWS_CHECK(f->state != RUNNING);
    forget(f);
#if FIBER_ASAN
    __lsan_unregister_root_region(f->stack, f->stack_bytes);
#endif
    VALGRIND_STACK_DEREGISTER(f->valgrind_id);
    munmap(f->map, f->map_bytes);
    free(f);
}

void rws__fiber_start(rws_fiber *f, void (*entry)(void *arg), void *arg)
{
    RWS_CHECK(f->state != RUNNING);
    forget(f);
#if FIBER_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    arm(f);
    f->entry = entry;
    f->arg = arg;
    f->state = ARMED;
}

void rws__fiber_resume(rws_fiber *f)
{
    RWS_CHECK(f->state == ARMED || f->state == ASIDE);
    f->state = RUNNING;
    rws_fault_thread.running = f;
    entering(f);
    jump_in(f);
    left(f);
    rws_fault_thread.running = NULL;
}

void rws__fiber_yield(rws_fiber *f)
{
    RWS_CHECK(f->state == RUNNING);
    f->state = ASIDE;
    leaving(f, false);
    jump_out(f);
    jumped_in(f);
    entered(f);
}

bool rws__fiber_done(const rws_fiber *f)
{
    return f->state == DONE;
}

bool rws__fiber_armed(const rws_fiber *f)
{
    return f->state == ARMED;
}
