/*
 * Puts the device code into the library, each image aligned to a page and read-only. A NUL follows: PTX is read as a string.
 * images.def, which kernels/local.mk writes, lists the files; they are found in the build tree, where the assembler runs.
 */
#define FL_IMAGE(family, operand, result, kind, number, file)                                                                              \
    .balign 4096;                                                                                                                \
    .globl fl_image_##family##_##operand##_##result##_##kind##_##number;                                                                      \
    .hidden fl_image_##family##_##operand##_##result##_##kind##_##number;                                                                     \
    .type fl_image_##family##_##operand##_##result##_##kind##_##number, %object;                                                              \
    fl_image_##family##_##operand##_##result##_##kind##_##number:                                                                             \
    .incbin file;                                                                                                                \
    .byte 0;

    .section .rodata
#include <kernels/images.def>

    .section .note.GNU-stack, "", %progbits
