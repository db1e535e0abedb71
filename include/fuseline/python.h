/*
 * For the Python package, which compiles no code of its own: functions of C that Python holds for built-in ones. A small call costs
 * little that way, since no line of Python runs between the user's call and the kernel.
 *
 * The library links no Python. The package hands over the addresses of the functions of Python that are needed, and the
 * objects of PyTorch that are. Every void * that is said to be an object is a PyObject *, which the package keeps alive for as long
 * as the process lives. What stands here may change from one version of the library to the next.
 */
#ifndef FUSELINE_PYTHON_H
#define FUSELINE_PYTHON_H

#include <stddef.h>

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of Python from 3.9 on, by address. */
struct fuseline_python_functions {
    void *Py_DecRef, *Py_IncRef, *PyObject_Type, *PyObject_GetAttr, *PyObject_SetAttr, *PyObject_VectorcallDict,
        *PyFloat_AsDouble, *PyErr_Clear, *PyErr_ExceptionMatches, *PyTuple_New, *PyTuple_SetItem, *PyTuple_GetItem, *PyTuple_Size,
        *PyLong_FromLongLong, *PyCapsule_GetPointer, *PyEval_SaveThread, *PyEval_RestoreThread;
};

/* What is needed of PyTorch: its exchange table, and objects. */
struct fuseline_python_torch {
    const struct DLPackExchangeAPI *exchange;
    /* Types of objects that are plain tensors; of the scalars that C may convert by itself; and singletons. */
    void *tensor, *parameter, *float_type, *bool_type, *tuple_type, *none, *true_object;
    /* Functions of a tensor: torch.empty_like, and of torch.Tensor new_empty, is_neg and is_inference. */
    void *empty_like, *new_empty, *is_neg, *is_inference;
    /* A function of a tuple of tensors, which tells automatic differentiation that their memory was written. */
    void *increment_version;
    /* Functions of nothing: torch.is_grad_enabled, torch.is_inference_mode_enabled, and whether torch.func's transforms are active. */
    void *is_grad_enabled, *is_inference_mode_enabled, *are_transforms_active;
    /* torch.autograd.forward_ad, the name of its current level, and the level outside of every dual_level. */
    void *forward_ad, *current_level, *no_level;
    /* How many dispatch modes are active, and the number of none; the state of torch.jit's tracer, None where it does not trace. */
    void *count_of_modes, *zero, *tracing_state;
    /* The exception by which the Python form of a forward says that a tensor has to be unwrapped first. */
    void *wrapped;
    /* Names of attributes, as strings. */
    void *requires_grad, *to_save, *saved_tensors, *scalars, *node_kernel;
};

#define FUSELINE_PYTHON_OUTPUTS 2

/* A kernel as Python calls it. */
struct fuseline_python_kernel {
    const char *name; /* "swish_forward" */
    int inputs, scalars, outputs;
    int lead;                            /* the input whose device is the call's */
    int second;                          /* the optional input without which the leading one holds two tensors; or -1 */
    int summed;                          /* the optional input whose gradient is a column sum, which Python sees to; or -1 */
    unsigned optional;                   /* a bit for each input that may be None */
    int like[FUSELINE_PYTHON_OUTPUTS];   /* the input that the output is like; where that is None there is none */
    int halved[FUSELINE_PYTHON_OUTPUTS]; /* whether it has half the last extent of an input that holds two tensors */
    int is_single;                       /* whether every call has one result */
    /* Objects: what serves every call, with the same arguments; the `apply` of the kernel's autograd.Function, or NULL; and the
     * Python forms of that Function's forward and backward, and of the registered operator's implementations. */
    void *fallback, *apply, *forward_fallback, *backward_fallback, *operator_fallback, *autograd_fallback;
    const struct fuseline_python_kernel *gradient; /* the kernel of the backward; or NULL */
    void *run;                                     /* the library's own */
};

/*
 * Takes over the functions of Python, or PyTorch's objects; the structure is copied. `size` is the structure's, as the package
 * knows it. NULL for `torch`: from now on the fallback serves its tensors.
 *
 * Returns: FUSELINE_OK; FUSELINE_ERROR_ARGUMENT for another size, and for a NULL in it
 */
FUSELINE_API fuseline_status fuseline_python_set_functions(const struct fuseline_python_functions *functions, size_t size);
FUSELINE_API fuseline_status fuseline_python_set_torch(const struct fuseline_python_torch *torch, size_t size);

/*
 * Readies a kernel, which the package keeps where it is. `size` is the structure's, as the package knows it.
 *
 * Returns: FUSELINE_OK; FUSELINE_ERROR_ARGUMENT for another size, and for a name or numbers that are not a kernel's
 */
FUSELINE_API fuseline_status fuseline_python_ready(struct fuseline_python_kernel *kernel, size_t size);

/*
 * The bodies of built-in functions, of the calling convention METH_FASTCALL. `self` is a capsule that holds the kernel.
 *
 * _call      takes inputs, scalars, out, dtype. Ordinary tensors of PyTorch are served here, with or without out, everything else by
 *            the fallback.
 * _operator  takes inputs, scalars, and options: the implementation of a registered operator on a device, which returns a tuple of
 *            results unless every call has one.
 * _autograd  takes a set of dispatch keys, and the same: the implementation that is asked first, in case something is differentiated.
 * _forward   takes the context of an autograd.Function, inputs, scalars, and what more there is, which is the fallback's.
 * _backward  takes the context and the results' gradients. `self` holds the forward's kernel.
 *
 * _node_apply  is a method: `self` is the node of the graph, which is the context; its attribute node_kernel holds the capsule. Takes
 *              the results' gradients.
 *
 * Returns: a new reference; or NULL with Python's error set
 */
FUSELINE_API void *fuseline_python_call(void *self, void *const *arguments, ptrdiff_t count);
FUSELINE_API void *fuseline_python_operator(void *self, void *const *arguments, ptrdiff_t count);
FUSELINE_API void *fuseline_python_autograd(void *self, void *const *arguments, ptrdiff_t count);
FUSELINE_API void *fuseline_python_forward(void *self, void *const *arguments, ptrdiff_t count);
FUSELINE_API void *fuseline_python_backward(void *self, void *const *arguments, ptrdiff_t count);
FUSELINE_API void *fuseline_python_node_apply(void *self, void *const *arguments, ptrdiff_t count);

#ifdef __cplusplus
}
#endif

#endif
