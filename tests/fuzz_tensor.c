/*
 * Tensors made of arbitrary bytes, through the borrowing entries: nothing may crash, read or write outside the tensors' memory, or
 * write after an error. Memory ends at pages that cannot be touched, on both sides.
 *
 * As it is, a program that tries inputs of a fixed pseudo-random sequence, part of "make check". As a fuzzer for libFuzzer:
 *
 *     ./configure CC=clang CFLAGS="-O1 -g -fsanitize=fuzzer-no-link,address,undefined" && make fuzz && tests/fuzz
 */
#define _GNU_SOURCE
#include <fuseline/fuseline.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPERANDS = 3, AXES = 6, ROOM = 4096 }; /* ROOM: bytes that a tensor may use, a whole number of pages */

static char *memory; /* ROOM bytes between two pages that cannot be touched */

static void set_up(void)
{
    long page = sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, ROOM + 2 * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, ROOM, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(1);
    }
    memory = all + page;
}

/* The bytes of one input, one after the other; zeros when they have run out. */
struct bytes {
    const uint8_t *next;
    size_t left;
};

static unsigned take(struct bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->next++;
}

static int64_t take_64(struct bytes *bytes)
{
    uint64_t value = 0;
    for (int k = 0; k < 8; k++)
        value = value << 8 | take(bytes);
    return (int64_t)value;
}

/* Mostly small numbers, now and then any. */
static int64_t take_number(struct bytes *bytes, int most)
{
    unsigned kind = take(bytes);
    return kind == 255 ? take_64(bytes) : kind > 250 ? -(int64_t)(kind % 8) : (int64_t)(kind % (unsigned)most);
}

struct operand {
    DLTensor tensor;
    int rank; /* of shape and strides, whatever the tensor says */
    int64_t shape[AXES], strides[AXES];
};

/* Shapes and dtypes are drawn once for all operands, so that the calls get past the comparison; then each may differ. */
static void make_operand(struct bytes *bytes, const struct operand *like, struct operand *made)
{
    static const DLDataType dtypes[] = {{kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};
    static const int devices[] = {kDLCPU, kDLCPU, kDLCPU, kDLCUDAHost, kDLROCMHost, kDLMetal, -1, 1000};
    unsigned odd = take(bytes), layout = take(bytes) % 4;
    *made = (struct operand){
        .tensor = {.device = {(DLDeviceType)devices[odd >= 242 && odd <= 244 ? odd - 237 : odd % 5], (int)(odd % 3)}}};
    if (like == NULL || odd >= 240) {
        made->rank = (int)(take(bytes) % AXES);
        made->tensor.dtype = dtypes[take(bytes) % 4];
        if (odd >= 248)
            made->tensor.dtype = (DLDataType){(uint8_t)take(bytes), (uint8_t)take(bytes), (uint16_t)take(bytes)};
        for (int axis = 0; axis < made->rank; axis++)
            made->shape[axis] = take_number(bytes, 9);
    } else {
        made->rank = like->rank;
        made->tensor.dtype = like->tensor.dtype;
        memcpy(made->shape, like->shape, sizeof made->shape);
    }
    made->tensor.ndim = made->rank;
    made->tensor.shape = made->shape;
    made->tensor.strides = made->strides;
    int64_t dense = 1;
    for (int axis = made->rank - 1; axis >= 0; axis--) {
        made->strides[axis] = layout == 0 ? take_number(bytes, 40) : layout == 1 && take(bytes) % 3 == 0 ? 0 : dense;
        dense = (int64_t)((uint64_t)dense * ((uint64_t)made->shape[axis] + (layout == 2)));
    }
    if (layout == 3)
        made->tensor.strides = NULL;
    made->tensor.data = (void *)((uintptr_t)memory + (uintptr_t)take_number(bytes, 251) * (1 + take(bytes) % 16));
    made->tensor.byte_offset = odd % 4 == 0 ? (uint64_t)take_number(bytes, 200) : 0;
    if (odd == 247)
        made->tensor.data = NULL;
    if (odd == 246)
        made->tensor.shape = NULL;
    if (odd == 245)
        made->tensor.ndim = (int)take_64(bytes);
}

/*
 * True if the caller's part of the contract holds: what the tensor describes lies in the memory that there is, or it describes
 * nothing that the checker could believe. Wide arithmetic, since that is what is being tested.
 */
static int is_within_memory(const DLTensor *tensor)
{
    __int128 lowest = 0, highest = 0, dense = 1, size = tensor->dtype.bits / 8;
    if (tensor->ndim < 0 || tensor->ndim > AXES)
        return tensor->ndim < 0 || tensor->ndim > 64; /* between the two, the shape would be read past its end */
    if (tensor->ndim > 0 && tensor->shape == NULL)
        return 1;
    for (int axis = 0; axis < tensor->ndim; axis++)
        if (tensor->shape[axis] <= 0)
            return 1;
    for (int axis = tensor->ndim - 1; axis >= 0; axis--) {
        __int128 stride = tensor->strides != NULL ? tensor->strides[axis] : dense;
        __int128 reach = (tensor->shape[axis] - 1) * stride;
        lowest += reach < 0 ? reach : 0;
        highest += reach > 0 ? reach : 0;
        dense *= tensor->shape[axis];
        if (dense > INT64_MAX || reach > INT64_MAX || reach < INT64_MIN)
            return 1; /* the checker must see it */
    }
    if (tensor->data == NULL)
        return 1;
    __int128 first = (__int128)(intptr_t)tensor->data - (__int128)(intptr_t)memory + (__int128)tensor->byte_offset;
    return first + lowest * size >= 0 && first + (highest + 1) * size <= ROOM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double betas[] = {1, 1.702, 0, -1, 1e38, 1e300, 0.0 / 0.0, 1e-40};
    static char before[ROOM];
    struct bytes bytes = {data, size};
    struct operand operands[OPERANDS];

    if (memory == NULL)
        set_up();
    unsigned choice = take(&bytes);
    double beta = betas[choice / 2 % 8];
    for (int k = 0; k < OPERANDS; k++) {
        make_operand(&bytes, k > 0 ? &operands[0] : NULL, &operands[k]);
        if (!is_within_memory(&operands[k].tensor))
            return 0;
    }
    for (int i = 0; i < ROOM; i++)
        memory[i] = (char)(i * 37 + (int)choice);
    memcpy(before, memory, ROOM);
    fuseline_status status =
        choice % 2 == 0 ? fuseline_swish_forward(&operands[0].tensor, beta, NULL, &operands[2].tensor)
                        : fuseline_swish_backward(&operands[0].tensor, &operands[1].tensor, beta, NULL, &operands[2].tensor);
    if (status != FUSELINE_OK && (memcmp(before, memory, ROOM) != 0 || fuseline_last_error()[0] == '\0'))
        abort();
    return 0;
}

#ifndef FUZZER

int main(void)
{
    enum { ROUNDS = 200000, LENGTH = 160 };
    uint64_t seed = 2026;
    int rounds = getenv("FUSELINE_TEST_THIN") != NULL ? ROUNDS / 100 : ROUNDS;
    puts("1..1");
    for (int round = 0; round < rounds; round++) {
        uint8_t data[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            data[i] = (uint8_t)(seed >> 56);
        }
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    puts("ok 1 - tensors of pseudo-random bytes");
    return 0;
}

#endif
