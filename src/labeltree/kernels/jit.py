"""How kernels are compiled, and helpers with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba._dynfunc import make_function
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import NativeLowering

from labeltree.kernels.cache import MachineCode, add_source

# As fast as True, but NaN and infinity keep their meaning: checks for them still work.
#
# "reassoc" lets a sum of floats be made in any order, and the order is chosen when the loop runs: one that
# also writes to an array goes element by element where that lies close to another one in memory. So that the
# same seed gives the same bytes, a loop that sums floats writes nothing (tests/kernels/test_loops.py checks).
FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz", "afn"})

_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "fastmath": set(FAST_MATH),
    "error_model": "numpy",
}
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


_hot: set[Callable[..., Any]] = set()  # bodies of generic helpers: what nodes and losses compute


class _Bitcode(JITCodeLibrary):
    """A helper's code as its callers link it.

    Numba would optimise it, and make machine code and a Python function of it, which nobody calls. Its
    callers optimise it again, so that it is worth the time for hot ones only, which make them quicker.
    """

    is_hot = False

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # older Numbas have none
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        if self.is_hot:
            self._optimize_final_module()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerHelper(NativeLowering):
    """The step that makes LLVM's code of Numba's, into :class:`_Bitcode`."""

    _name = "labeltree_lower_helper"

    def run_pass(self, state: Any) -> bool:
        state.library = _Bitcode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.is_hot = state.func_id.func in _hot
        state.flags.no_compile = True
        super().run_pass(state)
        result = state["cr"]
        # Callers find the helper by this object; its address, 0, is never called.
        name = result.fndesc.qualname
        handle = make_function(result.fndesc.lookup_module(), name, name, 0, result.env, (state.library,))
        state.targetctx.insert_user_function(handle, result.fndesc, [state.library])
        state["cr"] = result._replace(cfunc=handle)
        return True


class _HelperCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [(_LowerHelper if step is NativeLowering else step, why) for step, why in steps.passes]
        steps.finalize()
        return [steps]


class _Helper(CPUDispatcher):
    """A function that kernels call, compiled once for all numbers: Numba would do so for each literal."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options | _NO_WRAPPERS, pipeline_class=_HelperCompiler)

    def compile(self, sig: Any) -> Any:
        """As Numba does, but without timers that hear of all that is compiled below."""
        arguments, return_type = normalize_signature(sig)
        found: Any = self.overloads.get(tuple(arguments))
        if found is None:
            compiler: Any = vars(self)["_compiler"]
            told = {"dispatcher": self, "args": arguments, "return_type": return_type}
            with global_compiler_lock, event.trigger_event("numba:compile", data=told):
                found = compiler.compile(arguments, return_type)
                self.add_overload(found)
        return found.entry_point

    def get_call_template(self, args: Any, kws: Any) -> Any:
        kws = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_template([types.unliteral(kind) for kind in args], kws)

    def __call__(self, *arguments: Any) -> Any:
        """From Python, for tests: compiled by itself."""
        return self._alone(*arguments)

    @functools.cached_property
    def _alone(self) -> Any:
        return numba.jit(**_OPTIONS)(self.py_func)


class _Generic(_Helper):
    """A helper of several bodies; the type of its first argument, a NamedTuple, chooses one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, _OPTIONS)
        self._bodies: dict[type, _Helper] = {}

    def of(self, *kinds: type) -> Callable[[Callable[..., Any]], Any]:
        """The body for these types of the first argument."""

        def add(function: Callable[..., Any]) -> Any:
            _hot.add(function)
            body = inlined(function)
            for kind in kinds:
                self._bodies[kind] = body
                add_source(kind, function)
            return body

        return add

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self._body_of(args[0].instance_class).get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self._body_of(sig[0].instance_class).get_overload(sig)

    def _body_of(self, kind: type) -> _Helper:
        if kind not in self._bodies:
            name, of = self.py_func.__name__, kind.__name__
            raise TypeError(f"{name} has no body for {of}: add one with @{name}.of({of})")
        return self._bodies[kind]


made: list[Kernel] = []  # all kernels of this process, also those that :func:`kernel_of` made


class Kernel(CPUDispatcher):
    """A function that Python calls; for other kernels it is a helper."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, targetoptions=_OPTIONS | {"no_cfunc_wrapper": True})
        self._cache = MachineCode(function)
        made.append(self)

    @functools.cached_property
    def _helper(self) -> Any:
        return _Helper(self.py_func, _OPTIONS)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:  # to the end of the turn, or another thread's could begin before
            try:
                return super().compile(sig)
            finally:
                self._cache.end_turn()

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self._helper.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self._helper.get_overload(sig)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, release the GIL, keep the machine code on disk."""
    return Kernel(function)


def kernel_of(*parts: Any) -> Callable[[Callable[..., Any]], Any]:
    """As :func:`kernel`, for a closure; the parts, strings and NamedTuples, tell it from other ones of it.

    ``@kernel_of("sparse", Logistic())`` of ``topk`` is ``sparse_logistic_topk``.
    """

    def make(function: Callable[..., Any]) -> Any:
        names = [part if isinstance(part, str) else type(part).__name__.lower() for part in parts]
        # Machine code goes by its qualified name, in files and when it is linked: so that has all of it.
        function.__qualname__ += "".join(f"[{type(part).__module__}.{part!r}]" for part in parts)
        function.__name__ = "_".join([*names, function.__name__])
        return Kernel(function)

    return make


def helper(function: Callable[..., Any]) -> Any:
    """Compile with the kernels that call it."""
    return _Helper(function, _OPTIONS)


def inlined(function: Callable[..., Any]) -> Any:
    """A helper of inner loops.

    Handing an array to a function that is not inlined counts references, atomically, which can take most of
    the time. For the same reason loops use arrays in local names, not fields of a NamedTuple, and helpers get
    whole arrays with a range instead of slices.
    """
    return _Helper(function, _OPTIONS | {"forceinline": True})


def generic(function: Callable[..., Any]) -> Any:
    """A helper that differs by the kind of nodes, link or method: ``@name.of(Kind)`` adds a body to it."""
    return _Generic(function)
