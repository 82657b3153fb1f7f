/* facts.h - what gcc -fanalyzer and clang-tidy cannot see in one file: a function that fails returns the status that it is
 * given, and one that refuses a file returns RWS_BAD_INPUT. tests/analyse includes this before every file but error.c and
 * quote.c. */
#include "base/error.h"
#include "base/quote.h"
#include "rws.h"

#define rws_fail(err, status, ...) ((void)(rws_fail)(err, status, __VA_ARGS__), (status))
#define rws_no_memory(err, what) ((void)(rws_no_memory)(err, what), RWS_NO_MEMORY)
#define rws__refuse(err, name, line, ...) ((void)(rws__refuse)(err, name, line, __VA_ARGS__), RWS_BAD_INPUT)
