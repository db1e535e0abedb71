"""replace(model): a model that exists computes with fuseline's operators.

What is replaced is a module's class, by a subclass of it that differs in one method. So the module stays the same
object, with the same parameters, buffers, children, hooks and place in the model: state_dict, optimizers, tied weights,
wrapped children (LoRA) and references from elsewhere keep working, isinstance still tells what it is, and to undo it is
to give the old class back. ``torch.distributed.fsdp.fully_shard`` goes the same way. A forward set on the module itself
would be less code, but is lost by pickle, and stays bound to the original in ``torch.nn.DataParallel``'s replicas.
"""

import copyreg
import functools
import re
import types
import weakref
from typing import NamedTuple, Optional

import torch

import fuseline

from .. import _errors
from ._expression import Called, Part, Unreadable, forward_of, is_bare, is_in_place, leaves, original_class, read
from ._formulas import Operation, find_gated, find_unary


class Change(NamedTuple):
    """A module that was replaced.

    Attributes:
        name: of the module in the model, as ``named_modules`` has it.
        before: the name of the class that it was of.
        after: what it calls now.
    """

    name: str
    before: str
    after: str


class Skip(NamedTuple):
    """A module that looks like one to replace, and was left as it is.

    Attributes:
        name: of the module in the model, as ``named_modules`` has it.
        kind: the name of its class.
        reason: why.
    """

    name: str
    kind: str
    reason: str


class Replacement:
    """What ``replace`` did.

    Attributes:
        changed: a list of ``Change``.
        skipped: a list of ``Skip``.
    """

    def __init__(self):
        self.changed = []
        self.skipped = []
        self._modules = []  # (name, weak reference to the module, class before, class after)

    def undo(self):
        """Gives every replaced module that is still there its old class back. A second call does nothing.

        Raises:
            RuntimeError: the class of a module was changed again since, as ``fully_shard`` does; nothing is undone.
        """
        alive = [(name, module(), before, after) for name, module, before, after in self._modules]
        alive = [(name, module, before, after) for name, module, before, after in alive if module is not None]
        for name, module, _, after in alive:
            if type(module) is not after:
                raise RuntimeError(
                    f"undo: module {name!r} is of class {type(module).__name__} now, where replace had made it "
                    f"{after.__name__}; accepted: modules whose class nothing else has changed since"
                )
        for _, module, before, _ in alive:
            module.__class__ = before
        self._modules = []

    def __repr__(self):
        changed = [(name, f"{before} -> {after}") for name, before, after in self.changed]
        skipped = [(name, f"{kind}: {reason}") for name, kind, reason in self.skipped]
        lines = _describe(f"replaced: {len(changed)}", changed) + _describe(f"skipped: {len(skipped)}", skipped)
        return "\n".join(lines or ["replaced: 0"])


def replace(model, *, in_place=False):
    """Swaps a model's activations and gated units for fuseline's.

    Replaced are, wherever they stand in the model:

    - activations: modules without parameters whose forward is swish with any beta, GELU in either form, or squared
      ReLU, such as ``torch.nn.SiLU``, ``torch.nn.GELU``, and transformers' ``SiLUActivation``, ``NewGELUActivation``,
      ``QuickGELUActivation``, ``ReLUSquaredActivation``;
    - gated feed-forwards: ``down(activation(gate(x)) * up(x))``, or with gate and up as the halves of one projection's
      result, of children of any name and class, as in transformers' Llama, Qwen, Mistral, Gemma and Phi-3;
    - ``_apply_gate`` of transformers' mixtures of experts, such as the clamped and interleaved unit of gpt-oss.

    They are recognised by what their code computes, not by name: it is read as a formula and compared with the
    operators'. Whatever is more than such a formula is left as it is. A call such as ``torch.nn.functional.silu`` in
    the middle of other code is out of reach.

    Weights are neither copied nor renamed, and each module stays the same object: only its class changes, to a
    subclass. Numbers that a forward reads from its module, such as a limit, are taken now. A gated feed-forward whose
    activation module gets a hook or is exchanged later runs that module again, as before.

    Args:
        model: a ``torch.nn.Module``; itself or modules in it are replaced.
        in_place: True takes activations with ``inplace=True`` too. They no longer overwrite their input then, which is
            right unless the code around them reads the overwritten one.

    Returns:
        A ``Replacement``: what was changed, what looked like it and was skipped, with the reason, and ``undo()``. What
        was replaced before is neither, so that a second call changes nothing.

    Raises:
        TypeError: model is no ``torch.nn.Module``.
    """
    if not isinstance(model, torch.nn.Module):
        raise _errors.ObjectError(f"model: is {type(model).__name__}; accepted: a torch.nn.Module")
    done = Replacement()
    for name, module in list(model.named_modules()):
        if isinstance(module, _Replaced):
            continue
        before = type(module)
        try:
            recipe = _recognize(module, in_place)
            after = _replaced_class(before, recipe)
            module.__class__ = after
        except (Unreadable, TypeError) as problem:
            if _looks_familiar(module):
                done.skipped.append(Skip(name, before.__name__, str(problem)))
            continue
        done.changed.append(Change(name, before.__name__, recipe.describe()))
        done._modules.append((name, weakref.ref(module), before, after))
    return done


# --- recognition ---


class _Recipe(NamedTuple):
    """What a replaced module does in place of what it did.

    Attributes:
        method: the name of the method that differs.
        parameter: the name of its argument.
        operation: what it calls.
        sources: the children whose results the operation gets; none where it gets the argument itself.
        last: the child that gets the operation's result, or None.
        entered: (name, class) of the children that the operation stands for.
    """

    method: str
    parameter: str
    operation: Operation
    sources: tuple
    last: Optional[str]
    entered: tuple

    def describe(self):
        called = self.operation.describe(*(self.sources or [self.parameter]))
        return called if self.method == "forward" else f"{called} in {self.method}"


# Of transformers' mixtures of experts: what is between the two projections.
_GATE_METHOD = "_apply_gate"


def _recognize(module, in_place):
    """The recipe for a module. Raises Unreadable, with what speaks against one."""
    kind = original_class(module)
    method = _GATE_METHOD if isinstance(getattr(kind, _GATE_METHOD, None), types.FunctionType) else "forward"
    function = forward_of(module) if method == "forward" else getattr(kind, method)
    reading = read(module, function)
    expression, last = reading.result, None
    if isinstance(expression, Called):
        expression, last = expression.argument, expression.child
    if is_in_place(expression) and not in_place:
        raise Unreadable(
            "it works in place, so that the code around it may read the overwritten input; in_place=True replaces it"
        )
    operation, sources = _find_operation(expression, reading)
    if operation is None:
        raise Unreadable("it computes none of fuseline's operators")
    entered = tuple((name, original_class(module._modules[name])) for name in reading.entered)
    return _Recipe(method, reading.parameter, operation, sources, last, entered)


def _find_operation(expression, reading):
    """The operation that an expression is, or None, and the names of the children whose results it takes."""
    found = leaves(expression)
    if len(found) == 1 and not reading.entered:
        # (Where a child was entered, that child is to be replaced, and not what is around it.)
        sources = _sources(found, reading)
        return (None, ()) if sources is None else (find_unary(expression, *found), sources)
    if len(found) == 2 and all(isinstance(leaf, Part) for leaf in found):
        gate, up = sorted(found, key=lambda part: part.which)
        sources = _sources([gate.packed], reading)
        if sources is None or gate.packed is not up.packed or gate.interleaved != up.interleaved:
            return None, ()
        operation = find_gated(expression, gate, up)
        if operation is not None and gate.interleaved:
            operation = operation._replace(options=(*operation.options, ("interleaved", True)))
        return operation, sources
    if len(found) == 2:
        for gate, up in (found, reversed(found)):
            sources = _sources([gate, up], reading)
            operation = find_gated(expression, gate, up) if sources else None
            if operation is not None:
                return operation, sources
    return None, ()


def _sources(symbols, reading):
    """The names of the children that made these of the input; none for the input itself; None if it is neither."""
    if len(symbols) == 1 and symbols[0] is reading.input:
        return ()
    if all(isinstance(symbol, Called) and symbol.argument is reading.input for symbol in symbols):
        return tuple(symbol.child for symbol in symbols)
    return None


# Only for what is listed as skipped; what is replaced is decided by what the code computes.
_FAMILIAR_CLASSES = (torch.nn.SiLU, torch.nn.GELU)
_FAMILIAR_NAMES = re.compile("silu|(?<!hard)swish|gelu|relu2|relusquared|squaredrelu|swiglu|geglu|reglu", re.IGNORECASE)
_FAMILIAR_CHILDREN = ({"gate_proj", "up_proj"}, {"gate_up_proj"})


def _looks_familiar(module):
    if isinstance(module, _FAMILIAR_CLASSES):
        return True
    if is_bare(module):
        return _FAMILIAR_NAMES.search(type(module).__name__) is not None
    names = {*module._modules, *module._parameters}
    return any(familiar <= names for familiar in _FAMILIAR_CHILDREN)


# --- replaced modules ---


class _Replaced:
    """What the classes of replaced modules have in common. Each is a subclass of the module's class before.

    Attributes:
        fuseline_original: the class before.
        fuseline_recipe: what is computed now.
    """

    def __reduce_ex__(self, protocol):
        # These classes are made as they are needed, so copies and pickles make them anew.
        kind = type(self)
        made, arguments, *state = super().__reduce_ex__(max(protocol, 2))
        if made is copyreg.__newobj__ and arguments == (kind,) and "fuseline_original" in vars(kind):
            made, arguments = _new, (kind.fuseline_original, kind.fuseline_recipe)
        return (made, arguments, *state)


def _new(original, recipe):
    kind = _replaced_class(original, recipe)
    return kind.__new__(kind)


@functools.cache
def _replaced_class(original, recipe):
    """The subclass of a module's class that follows a recipe: always the same one."""
    attributes = {
        "__module__": original.__module__,
        "__doc__": original.__doc__,
        "fuseline_original": original,
        "fuseline_recipe": recipe,
        recipe.method: _make_method(getattr(original, recipe.method), recipe),
    }
    return types.new_class(
        "Fuseline" + original.__name__, (_Replaced, original), exec_body=lambda space: space.update(attributes)
    )


def _make_method(original, recipe):
    operation = recipe.operation
    function, options = getattr(fuseline, operation.function), dict(operation.options)

    def method(self, *arguments, **named):
        if len(arguments) + len(named) != 1 or not (arguments or recipe.parameter in named):
            return original(self, *arguments, **named)  # which raises a TypeError
        (x,) = arguments or named.values()
        if not _are_as_recognized(self, recipe.entered):
            return original(self, x)
        operands = [self._modules[name](x) for name in recipe.sources] or [x]
        if len(operands) == 2 and operands[0].dtype != operands[1].dtype:
            dtype = torch.promote_types(operands[0].dtype, operands[1].dtype)
            operands = [operand.to(dtype) for operand in operands]
        result = function(*operands, **options)
        return result if recipe.last is None else self._modules[recipe.last](result)

    return functools.wraps(original)(method)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_HOOKS = [name for name in _HOOKS if hasattr(torch.nn.Module(), name)]


def _are_as_recognized(module, entered):
    """Whether the children that an operation stands for are what they were, and have no hook that is to be called."""
    for name, kind in entered:
        child = module._modules.get(name)
        if original_class(child) is not kind or any([getattr(child, hooks) for hooks in _HOOKS]):
            return False
    return True


# --- text ---


def _describe(title, rows):
    """Rows of (name, text), those that differ only by numbers in the name as one, with their count."""
    if not rows:
        return []
    counts = {}
    for name, text in rows:
        key = re.sub(r"(?<![^.])\d+(?![^.])", "*", name) or "(the model)", text
        counts[key] = counts.get(key, 0) + 1
    width = max(len(name) for name, _ in counts)
    return [title] + [
        f"  {name:<{width}}  {text}" + (f"  ({count} times)" if count > 1 else "")
        for (name, text), count in counts.items()
    ]
