#include "base/count.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Appends the digits at *at to *out, and counts them. */
static bool read_digits(const char **at, uint64_t *out, int *n)
{
    for (*n = 0; is_digit(**at); ++*at, ++*n)
        if (__builtin_mul_overflow(*out, UINT64_C(10), out) ||
            __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out))
            return false;
    return true;
}

/* The power of ten behind the digits at *at: e5, e+5, k or M. False: it is too large. */
static bool read_power(const char **at, int *power)
{
    uint64_t    exponent = 0;
    int         n = 0;
    const char *digits = *at + ((*at)[0] == 'e' || (*at)[0] == 'E' ? 1 + ((*at)[1] == '+') : 0);
    if (digits > *at && is_digit(*digits)) {
        if (!read_digits(&digits, &exponent, &n) || exponent > 100) return false;
        *at = digits;
    } else if (**at == 'k' || **at == 'M') exponent = *(*at)++ == 'k' ? 3 : 6;
    *power = (int)exponent;
    return true;
}

bool rws__count_read(const char **at, uint64_t *out)
{
    const char *end = *at;
    uint64_t    value = 0;
    int         whole, fraction = 0, power;
    if (!read_digits(&end, &value, &whole) || !whole) return false;
    if (*end == '.' && is_digit(end[1])) {
        end++;
        if (!read_digits(&end, &value, &fraction)) return false;
    }
    if (!read_power(&end, &power)) return false;
    for (power -= fraction; power < 0; power++, value /= 10)
        if (value % 10) return false;
    for (; power > 0 && value; power--)
        if (__builtin_mul_overflow(value, UINT64_C(10), &value)) return false;
    *out = value;
    *at = end;
    return true;
}
