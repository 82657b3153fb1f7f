/* beside.c - a library that a model in the same folder needs. */
__attribute__((visibility("default"))) int beside(void);

int beside(void)
{
    return 0;
}
