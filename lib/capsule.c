/* The destructor of Python capsules that carry DLPack structures. Links no Python: the binding tells where its functions are. */
#include <fuseline/tensor.h>
#include <stddef.h>

static int (*capsule_is_valid)(void *capsule, const char *name);
static void *(*capsule_pointer)(void *capsule, const char *name);

void fuseline_set_capsule_functions(void *is_valid, void *get_pointer)
{
    /* POSIX promises that a function's address fits a data pointer; ISO C knows no cast between the two. */
    *(void **)&capsule_is_valid = is_valid;
    *(void **)&capsule_pointer = get_pointer;
}

void fuseline_capsule_destructor(void *capsule)
{
    if (capsule_is_valid == NULL || capsule_pointer == NULL)
        return;
    if (capsule_is_valid(capsule, "dltensor")) {
        DLManagedTensor *managed = capsule_pointer(capsule, "dltensor");
        if (managed->deleter != NULL)
            managed->deleter(managed);
    } else if (capsule_is_valid(capsule, "dltensor_versioned")) {
        DLManagedTensorVersioned *managed = capsule_pointer(capsule, "dltensor_versioned");
        if (managed->deleter != NULL)
            managed->deleter(managed);
    }
}
