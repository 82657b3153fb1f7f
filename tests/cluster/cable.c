/* cable.c - a slow cable between two network namespaces, where the kernel has no netem.
 *
 *     cable SPACE SPACE MICROSECONDS MEGABITS
 *
 * Makes a device "wire0" (TAP) in each namespace and carries packets from one to the other: each direction sends one
 * packet after the other at the rate, and a packet arrives so many microseconds after it has left. Prints "ready" when
 * the devices are there, and works until it is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 9216, QUEUE = 4096 };

typedef struct {
    double  arrives;
    size_t  size;
    uint8_t bytes[PACKET];
} packet;

/* One direction: packets that are on the way. */
typedef struct {
    int      from, to;
    double   free_at; /* when the last packet has left */
    packet  *queue;
    unsigned first, n;
} direction;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_wire(const char *space)
{
    char         path[256];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(path, sizeof path, "/var/run/netns/%s", space);
    strcpy(request.ifr_name, "wire0");
    const int netns = open(path, O_RDONLY | O_CLOEXEC);
    if (netns < 0 || setns(netns, CLONE_NEWNET) != 0) return -1;
    close(netns);
    const int wire = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return wire >= 0 && ioctl(wire, TUNSETIFF, &request) == 0 ? wire : -1;
}

static void take(direction *d, double delay, double rate)
{
    while (d->n < QUEUE) {
        packet       *p = &d->queue[(d->first + d->n) % QUEUE];
        const ssize_t size = read(d->from, p->bytes, PACKET);
        if (size <= 0) return;
        const double t = now();
        d->free_at = (d->free_at > t ? d->free_at : t) + (double)size * 8 / rate;
        p->arrives = d->free_at + delay;
        p->size = (size_t)size;
        d->n++;
    }
}

/* Delivers what has arrived; returns the seconds until the next packet does. */
static double deliver(direction *d)
{
    while (d->n) {
        packet      *p = &d->queue[d->first];
        const double left = p->arrives - now();
        if (left > 0) return left;
        (void)!write(d->to, p->bytes, p->size);
        d->first = (d->first + 1) % QUEUE;
        d->n--;
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    const double delay = 1e-6 * atof(argv[3]), rate = 1e6 * atof(argv[4]);
    const int    a = open_wire(argv[1]), b = open_wire(argv[2]);
    direction    ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    if (a < 0 || b < 0) {
        perror("cable");
        return 1;
    }
    for (int i = 0; i < 2; i++)
        if (!(ways[i].queue = malloc(QUEUE * sizeof(packet)))) return 1;
    prctl(PR_SET_TIMERSLACK, 1);
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}); /* a cable waits for no processor */
    prctl(PR_SET_PDEATHSIG, 15);
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct pollfd         polls[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
        const double          one = deliver(&ways[0]), two = deliver(&ways[1]), left = one < two ? one : two;
        const struct timespec wait = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
        ppoll(polls, 2, &wait, NULL);
        for (int i = 0; i < 2; i++)
            if (polls[i].revents) take(&ways[i], delay, rate);
    }
}
