/* grammars.S - the grammar files that come with the program, byte for byte: rws_grammar_<name> … rws_grammar_<name>_end. */

#define GRAMMAR(name, file)               \
        .global rws_grammar_##name;       \
        .global rws_grammar_##name##_end; \
        .hidden rws_grammar_##name;       \
        .hidden rws_grammar_##name##_end; \
rws_grammar_##name:                       \
        .incbin file;                     \
rws_grammar_##name##_end:

        .section .rodata
GRAMMAR(astronomers, "models/grammars/astronomers.pcfg")
GRAMMAR(orders, "models/grammars/orders.pcfg")
GRAMMAR(garden, "models/grammars/garden.pcfg")

#if defined(__linux__) && defined(__ELF__)
        .section .note.GNU-stack, "", %progbits
#endif
