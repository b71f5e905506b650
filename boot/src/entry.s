# From QEMU's PVH entry (32 bits, no paging, %ebx: the start info) to `kernel_main`, and from the other CPUs' start in
# real mode to `cpu_main`. All physical memory is mapped twice: at its own addresses, where the kernel runs, and in the
# direct map.

.section .note.pvh, "a", @note
.align 4
.long 4, 8, 18                  # name, description, XEN_ELFNOTE_PHYS32_ENTRY
.asciz "Xen"
.quad entry32

.section .bss
.align 4096
.global boot_pml4
boot_pml4: .skip 4096
boot_pdpt: .skip 4096
boot_stack: .skip 131072
boot_stack_top:

.section .data
.align 8
.global cpus_started
cpus_started: .long 1           # the first CPU has the number 0
.global cpu_stacks
.align 8
cpu_stacks: .skip 8 * 8         # the top of each other CPU's first stack

.section .rodata
.align 8
gdt:
    .quad 0
    .quad 0x00af9a000000ffff    # 0x08: code, 64 bits
    .quad 0x00cf92000000ffff    # 0x10: data
    .quad 0x00cf9a000000ffff    # 0x18: code, 32 bits
gdt_pointer:
    .word . - gdt - 1
    .long gdt

.section .text
.code32
.global entry32
entry32:
    cld
    movl $boot_stack_top, %esp
    # Entry i of the PDPT maps gigabyte i: present, writable, huge.
    xorl %ecx, %ecx
1:  movl %ecx, %eax
    shll $30, %eax
    orl $0x83, %eax
    movl %eax, boot_pdpt(, %ecx, 8)
    movl %ecx, %eax
    shrl $2, %eax
    movl %eax, boot_pdpt + 4(, %ecx, 8)
    incl %ecx
    cmpl $512, %ecx
    jne 1b
    movl $boot_pdpt, %eax
    orl $3, %eax
    movl %eax, boot_pml4
    movl %eax, boot_pml4 + 8 * 256
    lgdt gdt_pointer
    movl %ebx, %edi
    movl $enter_first, %esi
    jmp to_long_mode

# Turns on long mode, and jumps to %esi in it.
to_long_mode:
    movl %cr4, %eax
    orl $0x20, %eax             # PAE
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx      # EFER: LME, NXE
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80010001, %eax       # PG, WP, PE
    movl %eax, %cr0
    ljmp $0x08, $in_long_mode

.code64
in_long_mode:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    xorl %eax, %eax
    movw %ax, %fs
    movw %ax, %gs
    movl %esi, %esi
    jmpq *%rsi

enter_first:
    movl %edi, %edi
    movl $boot_stack_top, %esp
    xorl %ebp, %ebp
    call kernel_main
    ud2

enter_other:
    movl $1, %edi
    lock xaddl %edi, cpus_started
    movq cpu_stacks(, %rdi, 8), %rsp
    xorl %ebp, %ebp
    call cpu_main
    ud2

# Copied to the page at 0x8000, where the other CPUs start in real mode.
.code16
.global trampoline
trampoline:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl 0x8000 + trampoline_gdt - trampoline
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x18, $other32
trampoline_gdt:
    .word 31
    .long gdt
.global trampoline_end
trampoline_end:

.code32
other32:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $enter_other, %esi
    jmp to_long_mode
.code64
