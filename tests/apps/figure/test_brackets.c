/* test_brackets.c - trees on a terminal, line by line. */
#include "support.h"

#include "figure/brackets.h"

#include <string.h>
#include <unistd.h>

static void check_lines(const char *text, int columns, bool unicode, const char *want)
{
    char  *lines = NULL;
    size_t size;
    FILE  *stream = open_memstream(&lines, &size);
    rws__brackets_print(text, columns, unicode, stream);
    fclose(stream);
    assert_string_equal(lines, want);
    free(lines);
}

static const char low[] = "(S (NP astronomers) (VP (V saw) (NP (NP stars) (PP (P with) (NP telescopes)))))";

static void trees_grow_down(void **state)
{
    (void)state;
    check_lines(low, 42, true,
                "            S\n"
                "     ┌──────┴──────┐\n"
                "    NP            VP\n"
                "     │        ┌────┴─────┐\n"
                "astronomers   V         NP\n"
                "              │     ┌────┴─────┐\n"
                "             saw   NP         PP\n"
                "                    │      ┌───┴────┐\n"
                "                  stars    P       NP\n"
                "                           │        │\n"
                "                         with  telescopes\n");
    check_lines("(S NP VP)", 80, true, "   S\n ┌─┴─┐\nNP  VP\n");
    check_lines("(X a)", 80, true, "X\n│\na\n");
    check_lines("( Long_label(A x)b\t(C y (D z)) )", 80, false,
                "Long_label\n"
                "  +--+---+\n"
                "  A  b   C\n"
                "  |     ++-+\n"
                "  x     y  D\n"
                "           |\n"
                "           z\n");
    check_lines("(A (B c) (B d) (B e) (B f))", 80, true,
                "    A\n"
                "┌──┬┴─┬──┐\n"
                "B  B  B  B\n"
                "│  │  │  │\n"
                "c  d  e  f\n");
    check_lines("(Ü ö)", 80, true, "Ü\n│\nö\n");
}

static void wide_trees_grow_to_the_right(void **state)
{
    (void)state;
    check_lines(low, 40, true,
                "S\n"
                "├─ NP astronomers\n"
                "└─ VP\n"
                "   ├─ V saw\n"
                "   └─ NP\n"
                "      ├─ NP stars\n"
                "      └─ PP\n"
                "         ├─ P with\n"
                "         └─ NP telescopes\n");
    check_lines("(A (B (C d) e) f)", 3, false, "A\n|- B\n|  |- C d\n|  `- e\n`- f\n");

    /* deeper than the limit of a tree printed from the top down */
    enum { DEEP = 3000 };
    char *text = malloc(4 * DEEP + 2), *at = text;
    for (int i = 0; i < DEEP; i++) at = stpcpy(at, "(A ");
    for (int i = 0; i < DEEP; i++) *at++ = i ? ')' : 'b';
    *at++ = ')';
    *at = '\0';
    char  *lines = NULL;
    size_t size;
    FILE  *stream = open_memstream(&lines, &size);
    rws__brackets_print(text, 80, true, stream);
    fclose(stream);
    int n = 0;
    for (size_t i = 0; i < size; i++) n += lines[i] == '\n';
    assert_int_equal(n, DEEP);
    free(lines);
    free(text);
}

static const char *const not_trees[] = {"",       "word",    "(",   ")",       "()",    "(A",
                                        "(A b))", "(A b) c", "A b", "((A) b)", "(A ())"};

static void what_is_no_tree_is_written_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof not_trees / sizeof *not_trees; i++) {
        char want[32];
        snprintf(want, sizeof want, "%s\n", not_trees[i]);
        check_lines(not_trees[i], 80, true, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_grow_down),
        cmocka_unit_test(wide_trees_grow_to_the_right),
        cmocka_unit_test(what_is_no_tree_is_written_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
