/* news.h - what has changed, numbered, for watchers that wait.
 *
 * One thread publishes; any number of threads wait for the next item. The last RWS_NEWS_KEPT items are kept, so that a
 * watcher whose connection broke goes on where it was.
 *
 *     watching the folders -> [news] -> server-sent events
 */
#ifndef RWS_SERVE_NEWS_H
#define RWS_SERVE_NEWS_H

#include <stdbool.h>
#include <stdint.h>

enum { RWS_NEWS_KEPT = 64 };

typedef struct rws_news rws_news;

/* Numbers begin after `before`. A server that is started again begins after all numbers of the server before it, so that a
 * watcher that comes with a number of that server has missed items, and is told so. NULL without memory. */
rws_news *rws_news_new(uint64_t before);
void      rws_news_free(rws_news *n);

/* Publishes a text, which is copied, and returns its number, one more than the latest. NULL stands for a text for which
 * there was no memory: watchers have missed it. */
uint64_t rws_news_publish(rws_news *n, const char *text);
uint64_t rws_news_latest(rws_news *n);

typedef enum { RWS_NEWS_ITEM, RWS_NEWS_NONE, RWS_NEWS_MISSED, RWS_NEWS_OVER } rws_news_state;

/* Waits up to so many seconds for the item after number `after`. RWS_NEWS_ITEM: *text is a copy of it, the caller's to
 * free, and *number its number. RWS_NEWS_MISSED: it is no longer kept; *number is the latest. RWS_NEWS_OVER: there will be
 * no more. */
rws_news_state rws_news_wait(rws_news *n, uint64_t after, double seconds, uint64_t *number, char **text);

/* Wakes all watchers for good. */
void rws_news_end(rws_news *n);

#endif
