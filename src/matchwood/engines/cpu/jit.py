"""Compiling: the only file of this engine that imports Numba (with the bodies of intrinsics).

A device function is lowered to LLVM's language and tidied up on its own; a kernel links all that it
calls, directly or not, optimises them together, and makes machine code once.  (Numba would optimise
every function fully and make machine code of it before a caller links it: a third of the time.)

A kernel has an **entry**, the function that native.py calls in place of Numba's wrapper for Python:

    int32 entry(int64 *slots, int64 me, void **raised)     of a kernel
    int64 entry(int64 ...)                                 of a routine

The slots hold the arguments one after the other, those of tuples in their order: for an array the
address of its data, its shape and its strides (in bytes); for a number one word (two for a complex
one); nothing for None and for functions.  `me` stands for the first slot of a team.  It returns
Numba's status; what was raised is a record of Numba's at the address `raised`, and an integer that
the kernel returned is in the word before the slots.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
from collections import Counter
from collections.abc import Iterator
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from llvmlite.ir.instructions import ExtractValue, InsertValue, PhiInstr
from numba.core import base, config, transforms, types
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.errors import NumbaError
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.ir import Assign
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering
from numba.core.types.functions import BaseFunction
from numba.core.typing.context import BaseContext
from numba.core.untyped_passes import InlineInlinables
from numba.np import arrayobj
from numba.np.numpy_support import as_dtype, from_dtype

from matchwood.engines.cpu.compiled import (
    External,
    Function,
    Intrinsic,
    Kernel,
    Routine,
    described,
    found,
)
from matchwood.engines.cpu.team import Team

# No `fastmath`: it would break NaN checks, and results would depend on the compiler.  The NumPy
# error model drops the division-by-zero branch, which no kernel relies on.  Kernels allocate
# nothing, so arrays need no reference counts.  With them every call of a device function inside a
# loop counts atomically, which made a matching four times slower.  A kernel that allocates does not
# compile.  No wrapper is made of any function, for Python or for C.
_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}  # fmt: skip

binding.initialize_native_target()
binding.initialize_native_asmprinter()
# Without this LLVM ends the process at a line of assembly: Numba prepares it for x86 only.
binding.initialize_native_asmparser()

_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


class Compiled(NamedTuple):
    symbol: str  # of the entry
    address: int
    object: bytes  # the machine code, as a file of objects


# What Numba gets for our records


def dispatcher(function: Function, pipeline: type[CompilerBase] | None = None) -> Any:
    """Numba's object for a function that kernels call, or for a kernel with its entry."""
    pipeline = pipeline or _DeviceCompiler
    made = numba.njit(**_OPTIONS, **function.targetoptions, pipeline_class=pipeline)(
        function.py_func
    )

    def add(code: CompileResult) -> None:  # without giving Numba an address
        made.overloads[tuple(code.signature.args)] = code

    template_of = made.get_call_template

    def call_template(arguments: Any, named: dict[str, Any]) -> Any:
        """Numba would make one form for `f(0)`, another for `f(1)`, and a third for `f(n)`."""
        named = {name: _any_number(kind) for name, kind in named.items()}
        return template_of(tuple(map(_any_number, arguments)), named)

    made.add_overload = add
    made.get_call_template = call_template
    return made


def _any_number(kind: Any) -> Any:
    """The type of an integer that is written in the code; other types as they are."""
    return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind


@functools.cache
def _device(function: Function) -> Any:
    return dispatcher(function)


def _type_of_function(function: Function) -> Any:
    return _device(function)._numba_type_  # which does not keep Numba's object alive


@functools.cache
def _type_of_intrinsic(intrinsic: Intrinsic) -> Any:
    made = numba.extending.intrinsic(intrinsic.py_func)
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)


@functools.cache
def _type_of_external(external: External) -> Any:
    result, *arguments = (getattr(types, kind) for kind in external.kinds)
    return types.ExternalFunction(external.symbol, result(*arguments))


_TYPES: dict[type, Any] = {
    Function: _type_of_function, Intrinsic: _type_of_intrinsic, External: _type_of_external,
}  # fmt: skip
for _kind, _type in _TYPES.items():
    setattr(_kind, "_numba_type_", property(_type))  # noqa: B010  Numba asks for it


# Libraries of code: Numba's, but for when they are optimised


class _Library(JITCodeLibrary):
    def add_ir_module(self, module: Any) -> None:
        _without_unused(module)
        super().add_ir_module(module)


class _DeviceLibrary(_Library):
    """The code of one device function, not linked to what it calls.

    LLVM's passes over the function alone have been done: without them a tridiagonal solver was
    1.2 times slower.
    """

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """For a function of Numba's own: with all that it calls."""
        whole = self._final_module.clone()
        _link(whole, self)
        return whole


class _KernelLibrary(_Library):
    """The code of a kernel and of all that it calls."""

    def finalize(self) -> None:
        _link(self._final_module, self)
        self._linking_libraries: list[Any] = []
        for function in self._final_module.functions:  # LLVM would call address 0
            # what Numba has at run time is not there where kept code is loaded
            if function.is_declaration and function.name.startswith(("_ZN", "numba_")):
                raise AssertionError(f"{function.name} is not linked")
        super().finalize()

    def _hide(self) -> None:
        """Nothing but the entry is seen by other objects of a library."""
        module = self._final_module
        for part in (*module.functions, *module.global_variables):
            if not part.is_declaration and not part.name.startswith(ENTRY):
                part.linkage = "internal"

    def _finalize_final_module(self) -> None:
        if not _target:
            super()._finalize_final_module()
            return
        self._hide()  # now: LLVM would inline more, and a local search took 1.8 times as long
        self._finalize_dynamic_globals()
        assert not self._dynamic_globals, "the code has addresses of this process"
        self._finalized = True


def _link(module: Any, library: Any) -> None:
    """Link what a library calls, directly or not, into a module.

    LLVM links no "linkonce" function that nothing calls yet.  But a caller may come later: so these
    functions are "weak" until all are there.  Afterwards those that nobody calls can go.
    """
    reached = _reached(library)
    for callee in reached:
        library._reload_init.update(callee._reload_init)
        own = isinstance(callee, _DeviceLibrary)
        part = callee._final_module.clone() if own else callee._get_module_for_linking()
        if own:
            _set_linkage(part, "external", "weak_odr")
        module.link_in(part, preserve=not own)
    _set_linkage(module, "weak_odr", "linkonce_odr")


def _set_linkage(module: Any, old: str, new: str) -> None:
    for function in module.functions:
        if not function.is_declaration and function.linkage == binding.Linkage[old]:
            function.linkage = new


def _reached(library: Any) -> list[Any]:
    """What a library calls, directly or not, in an order that does not depend on addresses."""
    reached: dict[Any, None] = {}
    waiting = library._linking_libraries[::-1]
    while waiting:
        callee = waiting.pop()
        if callee not in reached:
            reached[callee] = None
            waiting += callee._linking_libraries[::-1]
    return list(reached)


class _Lower(Lower):
    """Numba's, without memory for variables that are assigned once, before every use of them.

    Numba keeps in memory what more than one block uses, all arguments among it.  It then loads a
    whole record for each use of a field, and LLVM takes all that apart again.
    """

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        blocks = self.func_ir.blocks
        before = compute_cfg_from_blocks(blocks).dominators()
        homes: dict[str, Any] = {}
        for label, block in blocks.items():
            for each in block.find_insts(Assign):
                homes[each.target.name] = None if each.target.name in homes else label
        for label, names in compute_use_defs(blocks).usemap.items():
            for name in names:  # that the block does not assign before it uses them
                home = homes.get(name)
                if home is None or home >= label or home not in before[label]:
                    homes[name] = None
        self._singly_assigned_vars |= {name for name, home in homes.items() if home is not None}

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Without a look at what was there: it has no references to count."""
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """From Numba's language to LLVM's, without machine code."""

    _name = "matchwood_lowering"
    library: type[JITCodeLibrary] = _DeviceLibrary

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        library = self.library(context.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        library._reload_init.update(state.reload_init)
        described = PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes,
            mangler=context.mangler, inline=flags.forceinline, noalias=flags.noalias,
            abi_tags=[flags.get_mangle_string()],
        )  # fmt: skip
        with context.push_code_library(library):
            lower = _Lower(context, library, described, state.func_ir, metadata=state.metadata)
            lower.lower()
        self.finish(state, library, described)
        place = object()  # by which callers find it
        context.insert_user_function(place, described, [library])
        state.library = library
        state["cr"] = _LowerResult(described, lower.call_helper, cfunc=place, env=lower.env)
        return True

    def finish(self, state: Any, library: Any, described: Any) -> None:
        library.finalize()


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(_Lowering):
    _name = "matchwood_kernel_lowering"
    library = _KernelLibrary

    def finish(self, state: Any, library: Any, described: Any) -> None:
        _add_entry(state.targetctx, library, described)


@register_pass(mutates_CFG=True, analysis_only=False)
class _RoutineLowering(_Lowering):
    _name = "matchwood_routine_lowering"
    library = _KernelLibrary

    def finish(self, state: Any, library: Any, described: Any) -> None:
        _add_plain_entry(state.targetctx, library, described)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inlining(InlineInlinables):
    """Numba's, without copies: it translates a function anew wherever it is inlined."""

    _name = "matchwood_inlining"

    def _do_work(self, state: Any, work: Any, block: Any, i: int, call: Any, worker: Any) -> Any:
        def translated(function: Any) -> Any:
            made = type(worker).run_untyped_passes(worker, function)
            for each in made.blocks.values():
                each.__deepcopy__ = lambda memo, each=each: each
            return made

        worker.run_untyped_passes = translated
        worker._compiler_pipeline = _untyped
        return super()._do_work(state, work, block, i, call, worker)


def _untyped(state: Any) -> Any:
    passes = DefaultPassBuilder.define_untyped_pipeline(state)
    return _changed(passes, {InlineInlinables: _Inlining})


# Passes over what no kernel has: expressions of whole arrays, closures, lists, `with`, messages
# that are made at run time.
_IDLE = {
    "nopython_rewrites", "inline_closure_likes", "with_lifting", "literal_unroll", "find_literally",
    "LiteralPropagation", "make_function_op_code_to_jit_function", "Rewrite dynamic raises",
    "annotate_types", "dump_parfor_diagnostics",
}  # fmt: skip


def _changed(passes: Any, ours: dict[Any, Any]) -> Any:
    """Numba's passes with some of ours in place of its own."""
    steps = [(ours.get(step, step), text) for step, text in passes.passes]
    passes.passes = [(step, text) for step, text in steps if step.name() not in _IDLE]
    passes.finalize()
    return passes


class _DeviceCompiler(CompilerBase):
    lowering: type[_Lowering] = _Lowering

    def define_pipelines(self) -> list[Any]:
        ours = {NativeLowering: self.lowering, InlineInlinables: _Inlining}
        return [_changed(DefaultPassBuilder.define_nopython_pipeline(self.state), ours)]


class _KernelCompiler(_DeviceCompiler):
    lowering = _KernelLowering


class _RoutineCompiler(_DeviceCompiler):
    lowering = _RoutineLowering


# Entries


ENTRY = "matchwood."


def _entry_name(described: Any) -> str:
    return f"{ENTRY}{described.llvm_func_name}"


def _add_entry(context: Any, library: Any, described: Any) -> None:
    """The function that loads the arguments from memory and calls the kernel."""
    form = ir.FunctionType(ir.IntType(32), [_WORD.as_pointer(), _WORD, _BYTES.as_pointer()])
    builder, entry, callee = _begin_entry(context, described, form)
    slots, me, raised = entry.args
    arguments = _Arguments(context, builder, slots, me)
    values = [arguments.take(kind) for kind in described.argtypes]
    status, result = context.call_conv.call_function(
        builder, callee, described.restype, described.argtypes, values
    )
    if isinstance(described.restype, (types.Integer, types.Boolean)):
        word = context.cast(builder, result, described.restype, types.int64)
        builder.store(word, builder.gep(slots, [_WORD(-1)]))
    builder.store(builder.bitcast(status.excinfoptr, _BYTES), raised)
    builder.ret(status.code)
    library.add_ir_module(builder.module)


def _add_plain_entry(context: Any, library: Any, described: Any) -> None:
    form = ir.FunctionType(_WORD, [_WORD] * len(described.argtypes))
    builder, entry, callee = _begin_entry(context, described, form)
    _, result = context.call_conv.call_function(
        builder, callee, described.restype, described.argtypes, entry.args
    )
    if described.restype == types.none:
        builder.ret(_WORD(0))
    else:
        builder.ret(context.cast(builder, result, described.restype, types.int64))
    library.add_ir_module(builder.module)


def _begin_entry(context: Any, described: Any, form: Any) -> tuple[Any, Any, Any]:
    module = context.create_module("entry")
    kind = context.call_conv.get_function_type(described.restype, described.argtypes)
    callee = ir.Function(module, kind, described.llvm_func_name)
    entry = ir.Function(module, form, _entry_name(described))
    return ir.IRBuilder(entry.append_basic_block()), entry, callee


class _Arguments:
    """Takes the values of arguments from slots, one after the other."""

    def __init__(self, context: Any, builder: Any, slots: Any, me: Any) -> None:
        self.context, self.builder, self.slots, self.me = context, builder, slots, me
        self.at = 0

    def take(self, kind: Any) -> Any:
        context, builder = self.context, self.builder
        if isinstance(kind, types.BaseTuple):
            values = [self.take(item) for item in kind]
            if getattr(kind, "instance_class", None) is Team and self.me is not None:
                values[0], self.me = self.me, None  # the first team only
            return context.make_tuple(builder, kind, values)
        if isinstance(kind, types.Array):
            return self._array(kind)
        if isinstance(kind, types.Complex):
            made = context.make_complex(builder, kind)
            made.real = self._number(kind.underlying_float)
            made.imag = self._number(kind.underlying_float)
            return made._getvalue()
        if isinstance(kind, (types.Integer, types.Boolean, types.Float)):
            return self._number(kind)
        if isinstance(kind, (types.NoneType, types.Callable)):
            return context.get_dummy_value()
        raise NumbaError(f"a kernel takes no argument of the type {kind}")

    def _word(self) -> Any:
        place = self.builder.gep(self.slots, [_WORD(self.at)])
        self.at += 1
        return self.builder.load(place)

    def _number(self, kind: Any) -> Any:
        word = self._word()
        if isinstance(kind, types.Boolean):
            return self.builder.trunc(word, ir.IntType(1))
        if isinstance(kind, types.Integer):
            narrow = kind.bitwidth < 64
            return self.builder.trunc(word, ir.IntType(kind.bitwidth)) if narrow else word
        if kind.bitwidth < 64:
            word = self.builder.trunc(word, ir.IntType(kind.bitwidth))
        return self.builder.bitcast(word, self.context.get_value_type(kind))

    def _array(self, kind: Any) -> Any:
        made = self.context.make_array(kind)(self.context, self.builder)
        data = self.builder.inttoptr(self._word(), made.data.type)
        shape, strides = ([self._word() for _ in range(kind.ndim)] for _ in range(2))
        size = _WORD(as_dtype(kind.dtype).itemsize)
        arrayobj.populate_array(
            made, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None
        )
        return made._getvalue()


# A kernel for given arguments


def kind_of(description: Any) -> Any:
    """Numba's type for a description (see `compiled.described`)."""
    if isinstance(description, list):
        place, *items = description
        kinds = [kind_of(item) for item in items]
        return types.BaseTuple.from_types(kinds, found(place) if place else None)
    name, *more = description.split(" ")
    if name == "none":
        return types.none
    if ":" in name:
        return _type_of_function(found(name))
    kind = types.boolean if name == "bool" else from_dtype(np.dtype(name))
    if not more:
        return kind
    return types.Array(kind, int(more[0][:-1]), more[0][-1], aligned=len(more) == 1)


def kind_of_value(value: Any) -> Any:
    """Numba's type for an argument, described or not."""
    if isinstance(value, tuple):
        items = [kind_of_value(item) for item in value]
        return types.BaseTuple.from_types(items, None if type(value) is tuple else type(value))
    description = described(value)
    if description is not None:
        return kind_of(description)
    try:
        kind = numba.typeof(value)
    except ValueError as error:
        raise NumbaError(str(error)) from error
    if isinstance(kind, types.Array) and not kind.mutable:
        return kind.copy(readonly=False)
    return kind


# Numba's own steps, where it does the same thing again and again: a third of its calls of Python
# functions.  They take the place of Numba's while one of our kernels is compiled.

_resolved: dict[Any, Any] = {}  # by a function of Numba's and the types of its arguments
_resolve, _post_process = BaseFunction.get_call_type, PostProcessor.run
_make_array, _extract = arrayobj.make_array, ir.IRBuilder.extract_value
_type_of_value = BaseContext.resolve_value_type


def _resolved_once(self: Any, context: Any, arguments: Any, named: Any) -> Any:
    """The signature of a call of Numba's `a + b` or `a[i]`: a function has few different ones, and
    inference asks for each of them many times.  What Numba compiles for a call is asked for anew.
    """
    key = self, tuple(arguments)
    known = _resolved.get(key)
    if known is None:
        known = _resolve(self, context, arguments, named)
        if not named and self._impl_keys[known.args] is self.typing_key:
            _resolved[key] = known
    return known


_operators: dict[Any, Any] = {}  # the types of functions such as `operator.add`


def _type_of_any(self: Any, value: Any) -> Any:
    """Numba first tries whether `operator.add` is a constant, at each `+` again."""
    if type(value) is not BuiltinFunctionType:
        return _type_of_value(self, value)
    if value not in _operators:
        _operators[value] = _type_of_value(self, value)
    return _operators[value]


def _post_processed(self: Any, emit_dels: bool = False, **options: Any) -> None:
    """Without a look at which variables live on, and without `del`: nothing counts references."""
    code = self.func_ir
    if code.is_generator:
        _post_process(self, emit_dels, **options)
    else:
        code.blocks = transforms.canonicalize_cfg(code.blocks)
        code.generator_info = None


class _ArrayValue:
    """An array's record as a value, with the names that Numba's own view of it has.

    That one keeps the record in memory, and loads each field for LLVM to take apart again.
    """

    def __init__(self, kind: Any, context: Any, builder: Any, value: Any) -> None:
        model = context.data_model_manager[kind]
        value = ir.Constant(model.get_value_type(), ir.Undefined) if value is None else value
        self.__dict__.update(
            _fe_type=kind, _context=context, _builder=builder, _datamodel=model, _value=value,
            _getvalue=lambda: self._value,
        )  # fmt: skip

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_"):  # something rare: in memory after all
            made = _make_array(self._fe_type)(self._context, self._builder, self._value)
            return getattr(made, field)
        place = self._datamodel.get_field_position(field)
        return self._builder.extract_value(self._value, place)

    def __setattr__(self, field: str, value: Any) -> None:
        place = self._datamodel.get_field_position(field)
        self.__dict__["_value"] = self._builder.insert_value(self._value, value, place)


def _array_of(kind: Any) -> Any:
    """In place of `make_array`."""

    def view(context: Any, builder: Any, value: Any = None, ref: Any = None) -> Any:
        if ref is None and type(kind) is types.Array:
            return _ArrayValue(kind, context, builder, value)
        return _make_array(kind)(context, builder, value, ref)

    return view


def _extracted(self: Any, whole: Any, place: Any, name: str = "") -> Any:
    """What was inserted there, without a line that takes it out again."""
    place = tuple(place) if isinstance(place, (tuple, list)) else (place,)
    while place and isinstance(whole, InsertValue):
        there = tuple(whole.indices)
        if place[: len(there)] == there:
            whole, place = whole.operands[1], place[len(there) :]
        elif there[: len(place)] == place:
            break  # a part of it
        else:
            whole = whole.operands[0]
    return _extract(self, whole, place, name) if place else whole


def _without_unused(module: Any) -> None:
    """Take away the lines that put records together, where nothing uses the record."""
    for function in module.functions:
        uses = Counter(id(part) for block in function.blocks for line in block.instructions
                       for part in _parts(line))  # fmt: skip
        for block in reversed(function.blocks):
            kept = []
            for line in reversed(block.instructions):
                if isinstance(line, (InsertValue, ExtractValue)) and not uses[id(line)]:
                    uses.subtract(map(id, line.operands))
                else:
                    kept.append(line)
            block.instructions[:] = kept[::-1]


def _parts(line: Any) -> Any:
    return [part for part, _ in line.incomings] if isinstance(line, PhiInstr) else line.operands


_OURS: tuple[tuple[Any, str, Any], ...] = (
    (arrayobj, "make_array", _array_of), (ir.IRBuilder, "extract_value", _extracted),
    (BaseFunction, "get_call_type", _resolved_once),
    (BaseContext, "resolve_value_type", _type_of_any),
    (PostProcessor, "run", _post_processed), (base, "_has_loc", functools.cache(base._has_loc)),
)  # fmt: skip


@contextlib.contextmanager
def _quickly() -> Iterator[None]:
    """With our steps in place of Numba's; and without the garbage collector: a compilation makes
    millions of small objects that stay, and looking for garbage costs 10 %."""
    looks = gc.isenabled()
    theirs = [getattr(owner, name) for owner, name, _ in _OURS]
    gc.disable()
    for owner, name, step in _OURS:
        setattr(owner, name, step)
    try:
        yield
    finally:
        for (owner, name, _), step in zip(_OURS, theirs, strict=True):
            setattr(owner, name, step)
        if looks:
            gc.enable()


def compile_kernel(kernel: Kernel, kinds: tuple[Any, ...]) -> Compiled:
    """Machine code for arguments of these types."""
    with global_compiler_lock, _quickly():
        made = _with_entry(kernel)
        made.compile(kinds)
        code = made.overloads[kinds]
        name = _entry_name(code.fndesc)
        address = code.library.get_pointer_to_function(name)
        return Compiled(name, address, bytes(code.library._get_compiled_object()))


_target: list[Any] = []  # the machine that a library is made for; none where code is run here


def object_code(signature: str, symbol: str) -> bytes:
    """A file of objects for a library: `symbol` is the entry of a kernel (compiled.signature).

    For the processor that NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name: both must be set.
    """
    if not _target:
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=config.CPU_NAME, features=config.CPU_FEATURES, opt=3, reloc="pic",
            codemodel="small",  # calls go straight there; the default, for JIT, loads addresses
        )  # fmt: skip
        _target.append(machine)
    name, *descriptions = json.loads(signature)
    kinds = tuple(kind_of(description) for description in descriptions)
    with global_compiler_lock, _quickly():
        made = _with_entry(found(name))
        made.compile(kinds)
        code = made.overloads[kinds]
        code.library._ensure_finalized()
        module = code.library._final_module.clone()
        module.get_function(_entry_name(code.fndesc)).name = symbol
        for function in module.functions:  # no tables for exceptions of C++: there are none
            if not function.is_declaration:
                function.add_function_attribute("nounwind")
        made_here: bytes = _target[0].emit_object(module)
        return made_here


@functools.cache
def _with_entry(kernel: Kernel) -> Any:
    return dispatcher(kernel, _RoutineCompiler if isinstance(kernel, Routine) else _KernelCompiler)
