"""Translates an expression of Python's syntax tree to its meaning: an IR expression, a literal, or another value.

Trees are walked by coroutines, so their depth is bounded by memory alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, TypeAlias

from tirlite.diag import Message, Span
from tirlite.dsl.convert import cast, condition, is_literal, number
from tirlite.dsl.inline import Inline
from tirlite.dsl.operators import (
    BINARY,
    COMPARE,
    Shape,
    ZeroDivisor,
    binary,
    chosen,
    element,
    extent_of,
    logical,
    tensor_type,
    unary,
)
from tirlite.dsl.parameters import described, output
from tirlite.dsl.scope import Scope
from tirlite.dsl.surroundings import Surroundings, is_tl, meaning, member
from tirlite.dsl.syntax import NotInKernels, SourceMap, refusal
from tirlite.dsl.vocabulary import BUILTINS, DECLARATIONS, CallSite, Word, WrongArgument, misplaced, named
from tirlite.ir.dtype import DType
from tirlite.ir.expr import (
    Add,
    Buffer,
    Cast,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    LetExpr,
    Load,
    Mul,
    Neg,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.trampoline import Steps, in_turn, run
from tirlite.ir.walk import walk
from tirlite.record import record


class NotCallable(Message):
    """Something is called that is not a function.

    Example: `x(i)`, where `x` is a buffer.
    """

    title = "{given} cannot be called"
    help = "a kernel calls `tl.*`, `min`, `max`, `abs`, types, other kernels, and functions under `@tl.inline`"


class NotIndexable(Message):
    """Something is indexed that has no elements.

    Example: `gain[i]`, where `gain` is a scalar parameter.
    Fix: Leave out the index, or declare the parameter as an array: `gain: tl.f32[n]`.
    """

    title = "{given} has no elements"
    help = "buffers are indexed, as in x[i, j]; types are given a shape, as in tl.f32[n, m]"


_TEXTS = {type(None): "None", type(...): "`...`", complex: "a complex number", bytes: "bytes"}


# The nodes of a cheap index.
_ARITHMETIC = (Var, IntImm, Add, Sub, Mul, Neg, Cast)
_FEW = 10


# The position of a call of a kernel or inline function: the whole value of a statement, a part of an expression, or a
# part that is evaluated conditionally or repeatedly.
Position: TypeAlias = Literal["alone", "inside", "conditional"]


@record
class AsFunction:
    """A kernel that stays a function of its own when called."""

    func: PrimFunc

    @property
    def name(self) -> str:
        return self.func.name


Callee: TypeAlias = Inline | PrimFunc | AsFunction

# Adds the statements of a call, and returns its value.
Invoke: TypeAlias = "Callable[[Callee, CallSite, Position], Steps[object]]"


class Expressions:
    """Translates expressions; `local` are the kernel's own names, `invoke` translates calls of functions."""

    def __init__(
        self, origin: SourceMap, surroundings: Surroundings, scope: Scope, local: set[str], invoke: Invoke | None = None
    ) -> None:
        self.origin = origin
        self.surroundings = surroundings
        self.scope = scope
        self.local = local
        self._invoke = invoke
        self._lets: list[tuple[str, Var]] = []
        self._alone: ast.expr | None = None
        self._conditions = 0

    def value(self, node: ast.expr, *, alone: bool = False, conditional: bool = False) -> object:
        """The meaning of `node`. It is `alone` if it is the whole value of its statement."""
        self._lets.clear()
        self._alone = node if alone else None
        self._conditions = int(conditional)
        return run(self._steps(node))

    def span(self, node: ast.AST) -> Span:
        return self.origin.span(node)

    def _steps(self, node: ast.AST) -> Steps[object]:
        rule = _RULES.get(type(node))
        if rule is None:
            raise refusal(node, self.span(node))
        return rule(self, node)

    def name(self, node: ast.Name) -> Steps[object]:
        yield from ()
        for name, var in reversed(self._lets):
            if name == node.id:
                return var
        if node.id in self.local:
            return self.scope.read(node.id, self.span(node))
        return self.surroundings.value(node.id, self.span(node), self.local)

    def _conditional(self, node: ast.expr) -> Steps[object]:
        """A part that is not always evaluated."""
        self._conditions += 1
        value = yield self._steps(node)
        self._conditions -= 1
        return value

    def literal(self, node: ast.Constant) -> Steps[object]:
        yield from ()
        if isinstance(node.value, (bool, int, float, str)):
            return node.value
        what = _TEXTS.get(type(node.value), "this constant")
        advice = "a kernel has bools, integers and floats"
        if node.value is ...:
            advice = "write a loop over the elements; a body without statements is `pass`"
        raise NotInKernels(what, advice, span=self.span(node)).error()

    def attribute(self, node: ast.Attribute) -> Steps[object]:
        base = yield self._steps(node.value)
        if isinstance(base, Buffer) and node.attr == "shape":
            return Shape(base)
        if isinstance(base, Buffer) and node.attr == "dtype":
            return base.dtype
        name = self.origin.text(node.value)
        made = member(base, name, node.attr, self.span(node))
        if isinstance(base, ModuleType):
            self.surroundings.note(f"{name}.{node.attr}", self.surroundings.attribute(base, node.attr))
        return made

    def subscript(self, node: ast.Subscript) -> Steps[object]:
        base = yield self._steps(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        values = yield in_turn(map(self._steps, parts))
        spans = [self.span(part) for part in parts]
        if isinstance(base, Buffer):
            return element(base, values, spans, self.span(node))
        if isinstance(base, Shape):
            return extent_of(base, values, self.span(node.slice))
        if isinstance(base, DType):
            return tensor_type(base, values)
        if isinstance(base, tuple) and len(values) == 1:
            return meaning(chosen(base, values[0], spans[0]), self.origin.text(node), self.span(node))
        if isinstance(base, Word) and base.name == "out" and len(values) == 1:
            return output(values[0], spans[0])
        raise NotIndexable(described(base), span=self.span(node)).error()

    def binary(self, node: ast.BinOp) -> Steps[object]:
        left = yield self._steps(node.left)
        right = yield self._steps(node.right)
        operator = BINARY.get(type(node.op))
        if operator is None:
            raise refusal(node.op, self.span(node))
        made = binary(operator, left, right, (self.span(node.left), self.span(node.right)))
        return self.with_divisor(made, self.span(node.right))

    def with_divisor(self, made: object, span: Span) -> object:
        """The result of an operator. Raises KernelError if it always divides by the constant 0, except in text."""
        divisor = made.b if isinstance(made, FloorDiv | FloorMod | TruncDiv | TruncMod) else None
        is_read = self.surroundings.executes and not self._conditions
        if is_read and isinstance(divisor, IntImm) and divisor.value == 0:
            raise ZeroDivisor(span=span).error()
        return made

    def unary(self, node: ast.UnaryOp) -> Steps[object]:
        operand = yield self._steps(node.operand)
        return unary(node.op, operand, self.span(node.operand))

    def logical(self, node: ast.BoolOp) -> Steps[object]:
        first, *rest = node.values
        result = condition((yield self._steps(first)), self.span(first))
        for part in rest:
            result = logical(node.op, result, condition((yield self._conditional(part)), self.span(part)))
        return result

    def membership(self, node: ast.Compare) -> Steps[object]:
        """`a in (1, 2)`: evaluates `a` once, and compares it with each value in turn."""
        spans = (self.span(node.left), self.span(node.comparators[0]))
        left, held = (yield self._steps(node.left)), None
        if not is_literal(left) and not isinstance(left, (Var, IntImm, FloatImm)):
            held = number(left, spans[0])
            left = Var("value", held.dtype)
        result: object = False
        for place, value in enumerate((yield self._members(node))):
            test = condition(binary(COMPARE[ast.Eq], left, value, spans), spans[0])
            result = logical(ast.Or(), condition(result, spans[0]), test) if place else test
        if isinstance(node.ops[0], ast.NotIn):
            result = unary(ast.Not(), result, spans[0])
        return LetExpr(left, held, number(result, spans[0])) if held is not None and isinstance(left, Var) else result

    def _members(self, node: ast.Compare) -> Steps[Sequence[object]]:
        """The values in `(1, k, x[i])`, or in a tuple from outside of the kernel."""
        values = node.comparators[0]
        if isinstance(values, (ast.Tuple, ast.List, ast.Set)):
            parts: list[object] = []
            for part in values.elts:
                parts.append((yield self._conditional(part) if parts else self._steps(part)))
            return parts
        instead = "write a tuple of numbers, as in `x[i] in (1, 2)`; for those in a buffer, a loop"
        if isinstance(values, ast.Call) and isinstance(values.func, ast.Name) and values.func.id == "range":
            raise NotInKernels("`in` of a range", "compare: `0 <= k < n`", span=self.span(node)).error()
        found = yield self._steps(values)
        if not isinstance(found, tuple):
            raise NotInKernels(f"`in` {described(found)}", instead, span=self.span(node)).error()
        return [meaning(each, "an element", self.span(values)) for each in found]

    def comparison(self, node: ast.Compare) -> Steps[object]:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return (yield self.membership(node))
        values = yield in_turn(map(self._steps, (node.left, node.comparators[0])))
        values += yield in_turn(map(self._conditional, node.comparators[1:]))
        parts: list[ast.expr] = [node.left, *node.comparators]
        spans = [self.span(part) for part in parts]
        lets = []
        for place in range(1, len(values) - 1):
            # Bind the middle of a chain, which is compared twice, unless it is an index, which proofs need to see.
            if not is_literal(values[place]) and not _is_index(values[place]):
                value = number(values[place], spans[place])
                lets.append((place, Var("middle", value.dtype), value))
                values[place] = lets[-1][1]
        tests = [self._compared(op, values, spans, place, node) for place, op in enumerate(node.ops)]
        if len(tests) == 1:
            return tests[0]
        result = condition(tests[-1], spans[-1])
        for place in range(len(tests) - 2, -1, -1):
            result = logical(ast.And(), condition(tests[place], spans[place]), result)
            for _, var, value in (each for each in lets if each[0] == place + 1):
                result = LetExpr(var, value, result)
        return result

    def _compared(
        self, op: ast.cmpop, values: Sequence[object], spans: Sequence[Span], place: int, node: ast.Compare
    ) -> object:
        operator = COMPARE.get(type(op))
        if operator is None:
            raise refusal(op, self.span(node))
        first = values[place]
        if place and isinstance(first, Expr):
            # The second evaluation needs Load nodes of its own.
            from tirlite.ir.rewrite import rewrite

            first = rewrite(first, {Load: lambda load: load.replaced()})
        return binary(operator, first, values[place + 1], (spans[place], spans[place + 1]))

    def choice(self, node: ast.IfExp) -> Steps[object]:
        parts = (node.test, node.body, node.orelse)
        values = [(yield self._steps(node.test))]
        if self.is_static(node.test):
            from tirlite.dsl.static import truth

            chosen: object = yield self._steps(node.body if truth(values[0], self.span(node.test)) else node.orelse)
            return chosen
        values += yield in_turn(map(self._conditional, parts[1:]))
        from tirlite.dsl.calls import conditional

        return conditional(tuple(values), tuple(self.span(part) for part in parts))

    def call(self, node: ast.Call) -> Steps[object]:
        pure = self._pure_function(node.func) if isinstance(node.func, ast.Attribute | ast.Name) else None
        if pure is not None and not node.keywords:
            from tirlite.dsl.host_functions import of_constants

            args = yield in_turn(map(self._steps, node.args))
            value = of_constants(pure, args, self.span(node))
            if value is not None:
                return value
        function = yield self._steps(node.func)
        if isinstance(function, Word) and function.name == "let":
            return (yield self._let(function, node))
        if isinstance(function, Word) and function.name == "static":
            return self.static(node)
        if isinstance(function, (Inline, PrimFunc)):
            return (yield self._invocation(function, node, node.args))
        if isinstance(function, Word) and function.name == "call":
            return (yield self._kernel_call(function, node))
        if not isinstance(function, (Word, DType)):
            raise NotCallable(described(function), span=self.span(node.func)).error()
        site = yield self._site(function, node)
        if isinstance(function, DType):
            site.only()
            site.count(1, 1, "one argument")
            return cast(site.args[0], function, site.spans[0])
        if function.name == "out" and len(site.args) == 1 and not site.keywords:
            return output(site.args[0], site.spans[0])
        if function.name == "buffer" and len(site.args) == 1:
            from tirlite.dsl.declarations import promised

            return promised(site)
        from tirlite.dsl.calls import call

        return self.with_divisor(call(site), site.spans[-1] if site.spans else site.span)

    def _pure_function(self, node: ast.Attribute | ast.Name) -> Callable[..., object] | None:
        """The function of `math`, or the ufunc of NumPy, that `node` names."""
        base = node.value if isinstance(node, ast.Attribute) else node
        if not isinstance(base, ast.Name) or base.id in self.local:
            return None
        found = self.surroundings.find(base.id)
        if isinstance(node, ast.Attribute):
            found = self.surroundings.attribute(found, node.attr) if isinstance(found, ModuleType) else None
        is_pure = getattr(found, "__module__", None) == "math" or type(found).__name__ == "ufunc"
        return found if is_pure and callable(found) else None

    def _invocation(self, function: Callee, node: ast.Call, args: Sequence[ast.expr]) -> Steps[object]:
        alone: Position = "alone" if node is self._alone else "inside"
        position: Position = "conditional" if self._conditions or self._lets else alone
        assert self._invoke is not None, "text knows no kernels and functions"
        site = yield self._site(Word(function.name), node, args)
        return (yield self._invoke(function, site, position))

    def _kernel_call(self, word: Word, node: ast.Call) -> Steps[object]:
        """`tl.call(kernel, arguments...)`."""
        if node is not self._alone:
            raise misplaced(word, self.span(node))
        callee = (yield self._steps(node.args[0])) if node.args else None
        if not isinstance(callee, PrimFunc):
            place = node.args[0] if node.args else node
            raise WrongArgument("tl.call", "a kernel", described(callee), span=self.span(place)).error()
        return (yield self._invocation(AsFunction(callee), node, node.args[1:]))

    def static(self, node: ast.Call) -> object:
        """`tl.static(expression)`."""
        if len(node.args) != 1 or node.keywords:
            raise NotInKernels("tl.static in this form", "write tl.static(expression)", span=self.span(node)).error()
        from tirlite.dsl.static import evaluated

        return evaluated(node.args[0], self.origin, self.surroundings, self.scope, self.local)

    def note_names(self, node: ast.AST) -> None:
        """Records the constants that `node` uses, if Python itself has evaluated it."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and self.surroundings.has(each.id):
                self.surroundings.note(each.id, self.surroundings.find(each.id))

    def is_static(self, node: ast.expr) -> bool:
        """Whether `node` is a call of `tl.static`."""
        return self.calls_one_of(("static",), node)

    def declaration(self, node: ast.expr) -> CallSite | None:
        """`node` as a call of `tl.alloc` or `tl.view`, if it is one."""
        return self.word_call(node) if self.is_declaration(node) else None

    def is_declaration(self, node: ast.expr) -> bool:
        """Whether `node` is a call of `tl.alloc` or `tl.view`."""
        return self.calls_one_of(DECLARATIONS, node)

    def is_plain(self, node: ast.expr) -> bool:
        """Whether `node` calls only words and types, and so adds no statements."""
        calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
        return all(self._is_word(each) for each in calls)

    def _is_word(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name) and function.id not in self.local:
            found = self.surroundings.find(function.id)
            return isinstance(found, (Word, DType)) or any(found is each for each in BUILTINS)
        base = function.value if isinstance(function, ast.Attribute) else None
        return isinstance(base, ast.Name) and base.id not in self.local and is_tl(self.surroundings.find(base.id))

    def calls_one_of(self, words: Sequence[str], node: ast.expr) -> bool:
        return self.named_call(words, node) is not None

    def named_call(self, words: Sequence[str], node: ast.expr) -> str | None:
        """The word among `words` that `node` calls, found by names alone, before anything is translated."""
        if not isinstance(node, ast.Call):
            return None
        function, found = node.func, None
        if isinstance(function, ast.Name) and function.id not in self.local:
            found = self.surroundings.find(function.id)
            found = next((word for builtin, word in BUILTINS.items() if builtin is found), found)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            base = self.surroundings.find(function.value.id)
            if function.value.id not in self.local and is_tl(base):
                found = named(function.attr)
        return found.name if isinstance(found, Word) and found.name in words else None

    def word_call(self, node: ast.expr) -> CallSite | None:
        """`node` as a call of a word, if it is one, as in the head of a `for` or a `with`."""
        function = self.value(node.func) if isinstance(node, ast.Call) else None
        self._conditions = 0
        if not isinstance(function, Word):
            return None
        assert isinstance(node, ast.Call)
        site: CallSite = run(self._site(function, node))
        return site

    def _site(self, function: Word | DType, node: ast.Call, given: Sequence[ast.expr] | None = None) -> Steps[CallSite]:
        args, given = [], node.args if given is None else given
        for arg in given:
            if isinstance(arg, (ast.Tuple, ast.List)) and function.name == "alloc":
                wanted = "a type with its shape, as in `tl.alloc(tl.f32[n, m])`,"
                raise WrongArgument("tl.alloc", wanted, "a shape alone", span=self.span(arg)).error()
            rows = _rows(arg) if function.name == "attr" else None
            args.append(rows if rows is not None else (yield self._steps(arg)))
        keywords: dict[str, tuple[object, Span]] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise refusal(ast.Starred(keyword.value), self.span(keyword.value))
            value: object
            if isinstance(keyword.value, ast.Tuple) and function.name == "buffer":
                value = tuple((yield in_turn(map(self._steps, keyword.value.elts))))
            else:
                value = yield self._steps(keyword.value)
            keywords[keyword.arg] = value, self.span(keyword)
        word = function if isinstance(function, Word) else Word(function.name)
        return CallSite(word, tuple(args), tuple(self.span(arg) for arg in given), keywords, self.span(node))

    def _let(self, word: Word, node: ast.Call) -> Steps[object]:
        """`tl.let(name, value, body)`."""
        if len(node.args) != 3 or node.keywords or not isinstance(node.args[0], ast.Name):
            advice = "write tl.let(name, value, body); a name for several statements is an assignment"
            raise NotInKernels("tl.let in this form", advice, span=self.span(node)).error()
        value = number((yield self._steps(node.args[1])), self.span(node.args[1]))
        var = Var(node.args[0].id, value.dtype)
        self._lets.append((var.name, var))
        body = number((yield self._steps(node.args[2])), self.span(node.args[2]))
        self._lets.pop()
        return LetExpr(var, value, body)


def _rows(argument: ast.expr) -> object | None:
    """The literal rows of integers of an attribute; tuples have no other use."""
    from tirlite.dsl.attributes import literal_rows

    return literal_rows(argument)


_RULES: Mapping[type[ast.AST], Callable[[Expressions, Any], Steps[object]]] = {
    ast.Name: Expressions.name,
    ast.Constant: Expressions.literal,
    ast.Attribute: Expressions.attribute,
    ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.logical,
    ast.Compare: Expressions.comparison,
    ast.IfExp: Expressions.choice,
    ast.Call: Expressions.call,
}


def _is_index(value: object) -> bool:
    """Whether it is a name, or an integer of a few operations on names, which may be evaluated twice."""
    if not isinstance(value, Expr) or isinstance(value, Var | FloatImm):
        return isinstance(value, Expr)
    nodes = [node for _, node in zip(range(_FEW + 1), walk(value), strict=False)]
    return len(nodes) <= _FEW and all(map(_is_plain, nodes))


def _is_plain(node: Node) -> bool:
    is_scalar = isinstance(node, Load) and not node.indices and not node.buffer.volatile
    return is_scalar or (isinstance(node, _ARITHMETIC) and node.dtype.is_integer)
