/* What a piece of code says of one of its kernels: code_object.h and ptx.h read it. */
#ifndef STANDIN_SIGNATURE_H
#define STANDIN_SIGNATURE_H

#define SIGNATURE_ARGUMENTS_MOST 16

struct signature {
    unsigned count; /* of arguments; what the compiler adds for itself is left out */
    unsigned offsets[SIGNATURE_ARGUMENTS_MOST], sizes[SIGNATURE_ARGUMENTS_MOST];
    unsigned bytes;        /* of all arguments together; 0 where the code does not say */
    unsigned threads_most; /* of a block */
    unsigned lanes;        /* of a wave */
    unsigned shared_bytes; /* that the kernel itself takes */
};

#endif
