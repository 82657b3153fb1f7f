/* fiber_switch.S - leaves one stack for another; the processor's half of fiber.c.
 *
 *     void rws_fiber_switch(void **save, void *to);    pushes the callee-saved registers, *save = sp, sp = to, pops them
 *     void rws_fiber_boot(void);                       the bottom frame of a fiber: calls fn(arg), which never returns
 *
 * To its caller the switch is an ordinary call, so only what a call must preserve is saved. Floating-point control
 * (MXCSR, x87 control word; FPCR) is left alone: it belongs to the thread, see fiber.h. The frame has the same form on
 * both stacks, so the unwind tables hold at every instruction; boot's return address is "undefined", which is where
 * unwinders stop, and its frame pointer is 0, which is where frame-pointer walkers do.
 *
 * fiber.c lays out a fiber's first frame; the drawings here and its arm() must agree.
 */

#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__)

/*  sp -> | r15 | r14 | r13 | r12 | rbx | rbp | return address |     first frame: r12 = arg, rbx = fn, return to boot */
        .text
        .globl  rws_fiber_switch
        .hidden rws_fiber_switch
        .type   rws_fiber_switch, @function
        .p2align 4
rws_fiber_switch:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register rip, rcx
        notrack jmp *%rcx                       /* a ret would be predicted to go back to the caller */
        .cfi_endproc
        .size   rws_fiber_switch, .-rws_fiber_switch

        .globl  rws_fiber_boot
        .hidden rws_fiber_boot
        .type   rws_fiber_boot, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined rip
        nop                                     /* unwinders look up the byte before a return address */
rws_fiber_boot:
        endbr64
        movq    %r12, %rdi
        callq   *%rbx
        ud2
        .cfi_endproc
        .size   rws_fiber_boot, .-rws_fiber_boot

/* Indirect branches are tracked (endbr64 above). A shadow stack is not kept in step, so the object does not claim it. */
        .section .note.gnu.property, "a", @note
        .p2align 3
        .long   4, 16, 5                        /* name size, description size, NT_GNU_PROPERTY_TYPE_0 */
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0             /* GNU_PROPERTY_X86_FEATURE_1_AND: IBT */

#elif defined(__aarch64__) && defined(__LP64__) && defined(__ELF__)

/*  sp -> | x29 | x30 | x19 | x20 | ... | x28 | d8 | ... | d15 |     first frame: x19 = fn, x20 = arg, x30 = boot */
        .text
        .globl  rws_fiber_switch
        .hidden rws_fiber_switch
        .type   rws_fiber_switch, %function
        .p2align 4
rws_fiber_switch:
        .cfi_startproc
        hint    #34                             /* bti c */
        stp     x29, x30, [sp, #-160]!
        .cfi_def_cfa_offset 160
        .cfi_offset x29, -160
        .cfi_offset x30, -152
        stp     x19, x20, [sp, #16]
        .cfi_offset x19, -144
        .cfi_offset x20, -136
        stp     x21, x22, [sp, #32]
        .cfi_offset x21, -128
        .cfi_offset x22, -120
        stp     x23, x24, [sp, #48]
        .cfi_offset x23, -112
        .cfi_offset x24, -104
        stp     x25, x26, [sp, #64]
        .cfi_offset x25, -96
        .cfi_offset x26, -88
        stp     x27, x28, [sp, #80]
        .cfi_offset x27, -80
        .cfi_offset x28, -72
        stp     d8, d9, [sp, #96]
        .cfi_offset d8, -64
        .cfi_offset d9, -56
        stp     d10, d11, [sp, #112]
        .cfi_offset d10, -48
        .cfi_offset d11, -40
        stp     d12, d13, [sp, #128]
        .cfi_offset d12, -32
        .cfi_offset d13, -24
        stp     d14, d15, [sp, #144]
        .cfi_offset d14, -16
        .cfi_offset d15, -8
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #160
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore d8
        .cfi_restore d9
        .cfi_restore d10
        .cfi_restore d11
        .cfi_restore d12
        .cfi_restore d13
        .cfi_restore d14
        .cfi_restore d15
        ret
        .cfi_endproc
        .size   rws_fiber_switch, .-rws_fiber_switch

        .globl  rws_fiber_boot
        .hidden rws_fiber_boot
        .type   rws_fiber_boot, %function
        .p2align 4
        .cfi_startproc
        .cfi_undefined x30
        nop                                     /* unwinders look up the byte before a return address */
rws_fiber_boot:
        hint    #34                             /* bti c */
        mov     x0, x20
        blr     x19
        brk     #1
        .cfi_endproc
        .size   rws_fiber_boot, .-rws_fiber_boot

#endif

/* Nothing here runs from the stack. */
#if defined(__ELF__)
        .section .note.GNU-stack, "", %progbits
#endif
