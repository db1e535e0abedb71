/*
 * Calls from Python without a line of Python on the way: built-in functions that read PyTorch's tensors through its exchange table,
 * have it make the results, run the kernel, and take part in automatic differentiation. Whatever is not quite ordinary goes to the
 * package's Python code, with the arguments as they came: it serves the call or says what is wrong.
 */
#include <fuseline/python.h>
#include <stdint.h>
#include <string.h>

#include "operator.h"
#include "pages.h"
#include "status.h"

#if DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 3

typedef void object;

/* Python's functions, with their types. In the order of struct fuseline_python_functions. */
static struct {
    void (*decrement)(object *);
    void (*increment)(object *);
    object *(*type_of)(object *);
    object *(*get)(object *, object *name);
    int (*set)(object *, object *name, object *value);
    object *(*call)(object *function, object *const *arguments, size_t count, object *keywords);
    double (*as_double)(object *);
    void (*clear_error)(void);
    int (*error_is)(object *type);
    object *(*new_tuple)(ptrdiff_t size);
    int (*set_item)(object *tuple, ptrdiff_t k, object *stolen);
    object *(*item)(object *tuple, ptrdiff_t k); /* borrowed */
    ptrdiff_t (*size)(object *tuple);
    object *(*from_integer)(long long);
    void *(*capsule_pointer)(object *, const char *name);
    void *(*release_lock)(void);
    void (*take_lock)(void *);
} python;

static struct fuseline_python_torch torch;
static int has_torch;

/* An operator's borrowing entry, with its arguments in arrays. */
typedef fuseline_status array_call(const DLTensor *const *tensors, const double *scalars, void *stream);

#define FL_OPERATOR(kernel, family, inputs, outputs, roles)  array_call fl_##kernel##_array;
#define FL_REDUCTION(kernel, family, inputs, outputs, roles) array_call fl_##kernel##_array;
#include "operators.def"

static const struct {
    const char *name;
    array_call *run;
} array_calls[FL_OPERATORS] = {
#define FL_OPERATOR(kernel, family, inputs, outputs, roles)  {#kernel, fl_##kernel##_array},
#define FL_REDUCTION(kernel, family, inputs, outputs, roles) {#kernel, fl_##kernel##_array},
#include "operators.def"
};

enum { SCALARS_MOST = 4, ARGUMENTS_MOST = FL_TENSORS_MOST + SCALARS_MOST, DIMENSIONS_MOST = 8 };

/* From this many elements on a call on the CPU releases Python's lock. */
enum { LARGE = 1 << 16 };

/* Copies a structure of pointers; refuses one with a NULL, and one of another size. */
static fuseline_status take(const char *name, void *to, const void *from, size_t size, size_t expected)
{
    void *pointer;
    if (from == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: is NULL", name);
    if (size != expected)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "size: is %zu; accepted: %zu, this library's", size, expected);
    for (size_t at = 0; at < size; at += sizeof pointer) {
        memcpy(&pointer, (const char *)from + at, sizeof pointer);
        if (pointer == NULL)
            return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: pointer %zu is NULL", name, at / sizeof pointer);
    }
    memcpy(to, from, size);
    return FUSELINE_OK;
}

fuseline_status fuseline_python_set_functions(const struct fuseline_python_functions *functions, size_t size)
{
    return take("functions", &python, functions, size, sizeof python);
}

fuseline_status fuseline_python_set_torch(const struct fuseline_python_torch *objects, size_t size)
{
    has_torch = 0;
    if (objects == NULL)
        return FUSELINE_OK;
    FL_TRY(take("torch", &torch, objects, size, sizeof torch));
    const struct DLPackExchangeAPI *api = torch.exchange;
    has_torch = api->header.version.major == DLPACK_MAJOR_VERSION && api->dltensor_from_py_object_no_sync != NULL &&
                api->current_work_stream != NULL;
    return FUSELINE_OK;
}

fuseline_status fuseline_python_ready(struct fuseline_python_kernel *kernel, size_t size)
{
    if (kernel == NULL || size != sizeof *kernel)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "size: is %zu; accepted: %zu, this library's", size, sizeof *kernel);
    if (kernel->inputs < 1 || kernel->outputs < 1 || kernel->outputs > FUSELINE_PYTHON_OUTPUTS ||
        kernel->inputs + kernel->outputs > FL_TENSORS_MOST || kernel->scalars < 0 || kernel->scalars > SCALARS_MOST)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "kernel: has %d inputs, %d scalars, %d outputs", kernel->inputs, kernel->scalars,
                       kernel->outputs);
    for (int k = 0; k < FL_OPERATORS; k++)
        if (strcmp(array_calls[k].name, kernel->name) == 0) {
            *(array_call **)&kernel->run = array_calls[k].run;
            return FUSELINE_OK;
        }
    return fl_fail(FUSELINE_ERROR_ARGUMENT, "kernel: there is none named %s", kernel->name);
}

/* Calls a function whose answer is True or False. 0 or 1; -1 after an error, which is cleared. */
static int asks(object *function, object *const *arguments, size_t count)
{
    object *answer = python.call(function, arguments, count, NULL);
    if (answer == NULL) {
        python.clear_error();
        return -1;
    }
    python.decrement(answer);
    return answer == torch.true_object;
}

/* True if a function of nothing answers with a certain object. */
static int answers(object *function, object *expected)
{
    object *answer = python.call(function, NULL, 0, NULL);
    if (answer == NULL) {
        python.clear_error();
        return 0;
    }
    python.decrement(answer);
    return answer == expected;
}

/* True if an attribute is a certain object, by identity. */
static int attribute_is(object *of, object *name, object *expected)
{
    object *found = python.get(of, name);
    if (found == NULL) {
        python.clear_error();
        return 0;
    }
    python.decrement(found);
    return found == expected;
}

static int has_type(object *value, object *type, object *other)
{
    object *found = python.type_of(value);
    python.decrement(found);
    return found == type || found == other;
}

/* True if scalars need no conversion. */
static int are_numbers(object *const *scalars, int count)
{
    for (int k = 0; k < count; k++)
        if (!has_type(scalars[k], torch.float_type, torch.bool_type))
            return 0;
    return 1;
}

static int64_t count_of(const DLTensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->ndim; d++)
        count *= tensor->shape[d];
    return count;
}

static int is_row_major(const DLTensor *tensor)
{
    int64_t expected = 1;
    for (int d = tensor->ndim - 1; tensor->strides != NULL && d >= 0; d--) {
        if (tensor->shape[d] != 1 && tensor->strides[d] != expected)
            return 0;
        expected *= tensor->shape[d];
    }
    return 1;
}

/* A new tensor with half the last extent of one that holds two; NULL if that is not for here, or did not succeed. */
static object *new_half(object *like, const DLTensor *layout)
{
    int ndim = layout->ndim;
    if (ndim < 1 || ndim > DIMENSIONS_MOST || !is_row_major(layout) || layout->shape[ndim - 1] % 2 != 0)
        return NULL;
    object *shape = python.new_tuple(ndim);
    for (int d = 0; shape != NULL && d < ndim; d++) {
        object *extent = python.from_integer(d == ndim - 1 ? layout->shape[d] / 2 : layout->shape[d]);
        if (extent == NULL) {
            python.decrement(shape);
            shape = NULL;
        } else {
            python.set_item(shape, d, extent);
        }
    }
    if (shape == NULL)
        return NULL;
    object *made = python.call(torch.new_empty, (object *[]){like, shape}, 2, NULL);
    python.decrement(shape);
    return made;
}

/* Reads a plain tensor. The structure is valid for as long as the object lives. */
static int read_tensor(object *from, DLTensor *tensor)
{
    return torch.exchange->dltensor_from_py_object_no_sync(from, tensor) == 0;
}

/* True if a result may be written to a tensor of the user's: an ordinary one that takes no part in differentiation. */
static int may_be_written(object *tensor)
{
    if (!has_type(tensor, torch.tensor, torch.parameter) || asks(torch.is_neg, &tensor, 1) != 0 ||
        attribute_is(tensor, torch.requires_grad, torch.true_object))
        return 0;
    int is_inference = asks(torch.is_inference, &tensor, 1);
    return is_inference == 0 || (is_inference == 1 && asks(torch.is_inference_mode_enabled, NULL, 0) == 1);
}

/*
 * The user's tensors for results, in the order of the kernel's outputs: `out` itself where there is one result, else the items of a
 * tuple. Fills `outputs` with new references, NULL where one is absent. Returns 0 if that is not for here, and leaves nothing then.
 */
static int take_given(const struct fuseline_python_kernel *kernel, object *out, const DLTensor *const *inputs, object **outputs)
{
    int results = 0, taken = 0;
    for (int j = 0; j < kernel->outputs; j++)
        results += inputs[kernel->like[j]] != NULL;
    if (results > 1 && (!has_type(out, torch.tuple_type, torch.tuple_type) || python.size(out) != results))
        return 0;
    for (int j = 0; j < kernel->outputs; j++) {
        if (inputs[kernel->like[j]] == NULL)
            continue;
        object *given = results > 1 ? python.item(out, taken++) : out;
        if (!may_be_written(given))
            return 0;
        outputs[j] = given;
    }
    for (int j = 0; j < kernel->outputs; j++)
        if (outputs[j] != NULL)
            python.increment(outputs[j]);
    return 1;
}

/*
 * Runs a kernel on ordinary tensors, into new ones or the user's.
 *
 * In:      arguments: inputs, then scalars
 *          out: as the user gave it; torch.none for new tensors
 * Out:     outputs, NULL where one is absent; new references
 * Returns: 1; or 0 if this call is not an ordinary one, or failed: no error is set then, nothing was written, and nothing is left
 *          behind
 */
static int run(const struct fuseline_python_kernel *kernel, object *const *arguments, object *out, object **outputs)
{
    DLTensor tensors[FL_TENSORS_MOST];
    const DLTensor *borrowed[FL_TENSORS_MOST] = {NULL};
    double scalars[SCALARS_MOST] = {0};
    int inputs = kernel->inputs, lead = kernel->lead, is_done = 0;
    void *stream = NULL;

    if (!has_torch || !are_numbers(arguments + inputs, kernel->scalars))
        return 0;
    for (int k = 0; k < kernel->scalars; k++)
        scalars[k] = python.as_double(arguments[inputs + k]);
    for (int k = 0; k < inputs; k++) {
        object *input = arguments[k];
        if (input == torch.none && (kernel->optional >> k & 1) != 0)
            continue;
        /* A view that is negated when read does not show it in what the exchange table tells. */
        if (k == kernel->summed || !has_type(input, torch.tensor, torch.parameter) || asks(torch.is_neg, &input, 1) != 0)
            return 0;
        if (!read_tensor(input, &tensors[k])) {
            python.clear_error();
            return 0;
        }
        borrowed[k] = &tensors[k];
    }
    if (borrowed[lead] == NULL)
        return 0;
    int is_packed = kernel->second >= 0 && borrowed[kernel->second] == NULL;

    int is_given = out != torch.none;
    for (int j = 0; j < kernel->outputs; j++)
        outputs[j] = NULL;
    if (is_given && !take_given(kernel, out, borrowed, outputs))
        return 0;
    for (int j = 0; j < kernel->outputs; j++) {
        int like = kernel->like[j], at = inputs + j;
        if (borrowed[like] == NULL)
            continue;
        if (!is_given)
            outputs[j] = kernel->halved[j] && is_packed ? new_half(arguments[like], borrowed[like])
                                                        : python.call(torch.empty_like, &arguments[like], 1, NULL);
        if (outputs[j] == NULL || !has_type(outputs[j], torch.tensor, torch.parameter) || !read_tensor(outputs[j], &tensors[at]))
            goto done;
        borrowed[at] = &tensors[at];
    }

    DLDevice device = borrowed[lead]->device;
    array_call *call;
    *(void **)&call = kernel->run;
    if (device.device_type == kDLCPU) {
        for (int j = 0; j < kernel->outputs; j++)
            if (outputs[j] != NULL && !is_given)
                fl_expect_writes((char *)tensors[inputs + j].data + tensors[inputs + j].byte_offset,
                                 count_of(&tensors[inputs + j]) * (tensors[inputs + j].dtype.bits / 8));
        void *thread = count_of(borrowed[lead]) >= LARGE ? python.release_lock() : NULL;
        is_done = call(borrowed, scalars, NULL) == FUSELINE_OK;
        if (thread != NULL)
            python.take_lock(thread);
    } else if (torch.exchange->current_work_stream(device.device_type, device.device_id, &stream) == 0) {
        is_done = call(borrowed, scalars, stream) == FUSELINE_OK;
    }
done:
    if (!is_done) {
        python.clear_error();
        for (int j = 0; j < kernel->outputs; j++)
            if (outputs[j] != NULL)
                python.decrement(outputs[j]);
    }
    return is_done;
}

/* A tuple of objects, the references to which are given up; `count` of them, None in the place of a NULL. */
static object *tuple_of(object *const *items, int count)
{
    object *tuple = python.new_tuple(count);
    for (int k = 0; k < count; k++) {
        object *item = items[k];
        if (item == NULL)
            python.increment(item = torch.none);
        if (tuple != NULL)
            python.set_item(tuple, k, item);
        else
            python.decrement(item);
    }
    return tuple;
}

/* What a call returns: the result, or a tuple of those that are there. */
static object *result_of(object *const *outputs, int count)
{
    object *present[FUSELINE_PYTHON_OUTPUTS];
    int number = 0;
    for (int j = 0; j < count; j++)
        if (outputs[j] != NULL)
            present[number++] = outputs[j];
    return number == 1 ? present[0] : tuple_of(present, number);
}

/*
 * What a call returns that wrote to the user's tensors, the references to which are given up. Automatic differentiation is told of
 * the change, so that what it saved of them counts as stale.
 */
static object *written(object *out, object *const *outputs, int count)
{
    object *versioned[FUSELINE_PYTHON_OUTPUTS];
    int number = 0;
    for (int j = 0; j < count; j++) {
        object *tensor = outputs[j];
        if (tensor != NULL && asks(torch.is_inference, &tensor, 1) == 0)
            versioned[number++] = tensor;
        else if (tensor != NULL) /* it has no version */
            python.decrement(tensor);
    }
    if (number > 0) {
        object *changed = tuple_of(versioned, number), *answer = NULL;
        if (changed != NULL) {
            answer = python.call(torch.increment_version, &changed, 1, NULL);
            python.decrement(changed);
        }
        if (answer == NULL)
            return NULL;
        python.decrement(answer);
    }
    python.increment(out);
    return out;
}

/*
 * How a call on these inputs is differentiated. OTHER is forward-mode, a transform of torch.func's, and whatever watches the
 * operators that are called: a dispatch mode (FakeTensorMode, say, or a tracer) or torch.jit's tracer.
 */
enum difference { PLAIN, BACKWARD, OTHER };
static enum difference difference_of(const struct fuseline_python_kernel *kernel, object *const *inputs)
{
    if (!attribute_is(torch.forward_ad, torch.current_level, torch.no_level) || !answers(torch.count_of_modes, torch.zero) ||
        !answers(torch.tracing_state, torch.none))
        return OTHER;
    for (int k = 0; k < kernel->inputs; k++)
        if (inputs[k] != torch.none && attribute_is(inputs[k], torch.requires_grad, torch.true_object))
            switch (asks(torch.is_grad_enabled, NULL, 0)) {
            case 0:
                return PLAIN;
            case 1:
                return asks(torch.are_transforms_active, NULL, 0) == 0 ? BACKWARD : OTHER;
            default:
                return OTHER;
            }
    return PLAIN;
}

void *fuseline_python_call(void *self, void *const *arguments, ptrdiff_t count)
{
    const struct fuseline_python_kernel *kernel = python.capsule_pointer(self, NULL);
    object *outputs[FUSELINE_PYTHON_OUTPUTS];
    if (kernel == NULL)
        return NULL;
    int taken = kernel->inputs + kernel->scalars;
    if (has_torch && count == taken + 2 && arguments[taken + 1] == torch.none &&
        has_type(arguments[kernel->lead], torch.tensor, torch.parameter)) {
        object *out = arguments[taken];
        enum difference difference = difference_of(kernel, arguments);
        if (difference == PLAIN && run(kernel, arguments, out, outputs))
            return out == torch.none ? result_of(outputs, kernel->outputs) : written(out, outputs, kernel->outputs);
        if (difference == BACKWARD && out == torch.none && kernel->apply != NULL &&
            are_numbers(arguments + kernel->inputs, kernel->scalars)) {
            object *result = python.call(kernel->apply, arguments, (size_t)taken, NULL);
            if (result != NULL || !python.error_is(torch.wrapped))
                return result;
            python.clear_error();
        }
    }
    return python.call(kernel->fallback, arguments, (size_t)count, NULL);
}

/* What an operator's implementation returns: the result, or a tuple of those that are there, be it one. */
static object *listed(const struct fuseline_python_kernel *kernel, object *const *outputs)
{
    object *result = result_of(outputs, kernel->outputs);
    if (kernel->is_single || result == NULL || outputs[0] != result)
        return result;
    return tuple_of(&result, 1);
}

/* True if inputs and scalars are followed by nothing but None, as options that are not asked for are passed. */
static int has_no_options(const struct fuseline_python_kernel *kernel, object *const *arguments, ptrdiff_t count)
{
    int taken = kernel->inputs + kernel->scalars;
    for (ptrdiff_t k = taken; k < count; k++)
        if (arguments[k] != torch.none)
            return 0;
    return has_torch && count >= taken;
}

void *fuseline_python_operator(void *self, void *const *arguments, ptrdiff_t count)
{
    const struct fuseline_python_kernel *kernel = python.capsule_pointer(self, NULL);
    object *outputs[FUSELINE_PYTHON_OUTPUTS];
    if (kernel == NULL)
        return NULL;
    if (has_no_options(kernel, arguments, count) && run(kernel, arguments, torch.none, outputs))
        return listed(kernel, outputs);
    return python.call(kernel->operator_fallback, arguments, (size_t)count, NULL);
}

void *fuseline_python_autograd(void *self, void *const *arguments, ptrdiff_t count)
{
    const struct fuseline_python_kernel *kernel = python.capsule_pointer(self, NULL);
    object *outputs[FUSELINE_PYTHON_OUTPUTS];
    if (kernel == NULL)
        return NULL;
    if (count > 0 && has_no_options(kernel, arguments + 1, count - 1) && difference_of(kernel, arguments + 1) == PLAIN &&
        run(kernel, arguments + 1, torch.none, outputs))
        return listed(kernel, outputs);
    return python.call(kernel->autograd_fallback, arguments, (size_t)count, NULL);
}

/* Sets an attribute to a tuple of some of the arguments. */
static int keep(object *context, object *name, object *const *items, int count)
{
    for (int k = 0; k < count; k++)
        python.increment(items[k]);
    object *tuple = tuple_of(items, count);
    int failed = tuple == NULL || python.set(context, name, tuple) != 0;
    if (tuple != NULL)
        python.decrement(tuple);
    return !failed;
}

void *fuseline_python_forward(void *self, void *const *arguments, ptrdiff_t count)
{
    const struct fuseline_python_kernel *kernel = python.capsule_pointer(self, NULL);
    object *outputs[FUSELINE_PYTHON_OUTPUTS];
    if (kernel == NULL)
        return NULL;
    int taken = kernel->inputs + kernel->scalars;
    if (kernel->gradient == NULL || count != 1 + taken || !run(kernel, arguments + 1, torch.none, outputs))
        return python.call(kernel->forward_fallback, arguments, (size_t)count, NULL);
    object *result = result_of(outputs, kernel->outputs);
    if (result != NULL && (!keep(arguments[0], torch.to_save, arguments + 1, kernel->inputs) ||
                           !keep(arguments[0], torch.scalars, arguments + 1 + kernel->inputs, kernel->scalars))) {
        python.decrement(result);
        return NULL;
    }
    return result;
}

/* Puts borrowed items of a tuple that an attribute holds into an array; a reference to the tuple itself, which keeps them alive, is
 * the caller's. NULL, without an error set, if there are not as many as there should be. */
static object *items_of(object *context, object *name, object **items, int count)
{
    object *tuple = python.get(context, name);
    if (tuple == NULL)
        return NULL;
    if (python.size(tuple) != count) {
        python.decrement(tuple);
        return NULL;
    }
    for (int k = 0; k < count; k++)
        items[k] = python.item(tuple, k);
    return tuple;
}

/* The gradients of a node's inputs. arguments: the node, which is the context of the forward, and the results' gradients. */
static object *backward(const struct fuseline_python_kernel *kernel, object *const *arguments, ptrdiff_t count)
{
    const struct fuseline_python_kernel *gradient = kernel->gradient;
    object *saved = NULL, *scalars = NULL, *result = NULL;
    if (gradient != NULL && count == 2 && gradient->inputs == 1 + kernel->inputs && asks(torch.is_grad_enabled, NULL, 0) == 0) {
        object *taken[ARGUMENTS_MOST] = {arguments[1]}, *outputs[FUSELINE_PYTHON_OUTPUTS];
        object *results[ARGUMENTS_MOST + 2] = {NULL};
        saved = items_of(arguments[0], torch.saved_tensors, taken + 1, kernel->inputs);
        if (saved != NULL)
            scalars = items_of(arguments[0], torch.scalars, taken + 1 + kernel->inputs, kernel->scalars);
        if (scalars != NULL && run(gradient, taken, torch.none, outputs)) {
            for (int j = 0; j < gradient->outputs; j++)
                results[gradient->like[j] - 1] = outputs[j];
            /* For scalars None, and for what the Python form of the forward may have been given besides. */
            result = tuple_of(results, kernel->inputs + kernel->scalars + 2);
        }
        if (result == NULL)
            python.clear_error();
        if (scalars != NULL)
            python.decrement(scalars);
        if (saved != NULL)
            python.decrement(saved);
        if (result != NULL)
            return result;
    }
    return python.call(kernel->backward_fallback, arguments, (size_t)count, NULL);
}

void *fuseline_python_backward(void *self, void *const *arguments, ptrdiff_t count)
{
    const struct fuseline_python_kernel *kernel = python.capsule_pointer(self, NULL);
    return kernel == NULL ? NULL : backward(kernel, arguments, count);
}

void *fuseline_python_node_apply(void *self, void *const *arguments, ptrdiff_t count)
{
    object *items[ARGUMENTS_MOST] = {self}, *capsule = python.get(self, torch.node_kernel);
    const struct fuseline_python_kernel *kernel = NULL;
    if (capsule != NULL) {
        kernel = python.capsule_pointer(capsule, NULL);
        python.decrement(capsule); /* its type keeps it */
    }
    if (kernel == NULL || count >= ARGUMENTS_MOST)
        return NULL;
    for (int k = 0; k < count; k++)
        items[k + 1] = arguments[k];
    return backward(kernel, items, count + 1);
}

#else

/* Without the exchange table everything takes the package's own way. */

static fuseline_status refuse(void)
{
    return fl_fail(FUSELINE_ERROR_VERSION, "this library was built with DLPack %d.%d, which has no exchange table; accepted: 1.3",
                   DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
}

fuseline_status fuseline_python_set_functions(const struct fuseline_python_functions *functions, size_t size)
{
    (void)functions, (void)size;
    return refuse();
}

fuseline_status fuseline_python_set_torch(const struct fuseline_python_torch *objects, size_t size)
{
    (void)objects, (void)size;
    return refuse();
}

fuseline_status fuseline_python_ready(struct fuseline_python_kernel *kernel, size_t size)
{
    (void)kernel, (void)size;
    return refuse();
}

/* Never called: the package makes built-in functions only where the functions above succeed. */

void *fuseline_python_call(void *self, void *const *arguments, ptrdiff_t count)
{
    (void)self, (void)arguments, (void)count;
    return NULL;
}

void *fuseline_python_operator(void *self, void *const *arguments, ptrdiff_t count)
{
    return fuseline_python_call(self, arguments, count);
}

void *fuseline_python_autograd(void *self, void *const *arguments, ptrdiff_t count)
{
    return fuseline_python_call(self, arguments, count);
}

void *fuseline_python_forward(void *self, void *const *arguments, ptrdiff_t count)
{
    return fuseline_python_call(self, arguments, count);
}

void *fuseline_python_backward(void *self, void *const *arguments, ptrdiff_t count)
{
    return fuseline_python_call(self, arguments, count);
}

void *fuseline_python_node_apply(void *self, void *const *arguments, ptrdiff_t count)
{
    return fuseline_python_call(self, arguments, count);
}

#endif
