"""Rewrites a tree by rules, bottom-up and at any depth; unchanged subtrees stay the same objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import is_not
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, overload

from tirlite.diag import Span
from tirlite.ir.expr import Binary, Buffer, BufferRef, Expr, FloatImm, IntImm, LetExpr, Load, Var
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, AttrStmt, Evaluate, For, Let, SeqStmt, Stmt, Store, View
from tirlite.record import replace

if TYPE_CHECKING:
    from tirlite.ir.kernel_call import Function

    Func = TypeVar("Func", bound=Function)
    Root = TypeVar("Root", SeqStmt, Stmt, Expr)


N = TypeVar("N", bound=Node)

# The most common statements and expressions, which contain no statements or nothing at all.
_LEAVES: frozenset[type[Node]] = frozenset((Store, Allocate, View, Let, Evaluate))
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var))
_DEEP = 50  # levels of expressions that are rewritten recursively

# A rule receives a node of its type with rewritten children. It returns the same node for "no change", another node,
# or, for a statement, a tuple of several (empty to drop it).
Rule: TypeAlias = Callable[[Any], "Node | tuple[Stmt, ...]"]
Rules: TypeAlias = Mapping[type[Node], Rule]
Hooks: TypeAlias = Mapping[type[Node], Callable[[Any], None]]


@overload
def rewrite(root: Func, rules: Rules, *, enter: Hooks | None = None) -> Func: ...
@overload
def rewrite(root: Root, rules: Rules, *, enter: Hooks | None = None) -> Root: ...
@overload
def rewrite(root: Node, rules: Rules, *, enter: Hooks | None = None) -> Node: ...
def rewrite(root: Node, rules: Rules, *, enter: Hooks | None = None) -> Node:
    """`root` with each node for which there is a rule replaced by the rule's result.
    `enter` is called with each node of its type, unchanged, before its children are visited. A new statement without a
    span inherits that of the statement it replaces. A changed parent keeps its span.
    """
    hooks = enter or {}
    if isinstance(root, Expr):
        made = _expression(root, rules, hooks, _ATOMS - rules.keys() - hooks.keys(), _DEEP)
        return SeqStmt(made) if isinstance(made, tuple) else made
    # Most passes have rules for statements alone, and most nodes are expressions.
    level: type[Node] = Node if any(issubclass(kind, Expr) for kind in (*rules, *hooks)) else Stmt
    return _rewritten(root, rules, hooks, level)


def _rewritten(root: Node, rules: Rules, hooks: Hooks, level: type[Node], *, is_deep: bool = False) -> Node:
    """`rewrite` with an explicit stack. Expressions are rewritten recursively, which is faster, unless `is_deep`."""
    kept = (_ATOMS if level is Node else _LEAVES) - rules.keys() - hooks.keys()
    # Blocks of leaf statements without a rule are skipped as a whole.
    passes_blocks = level is Stmt and SeqStmt not in rules and SeqStmt not in hooks
    opened = [_Open(root, _below(root, level))]
    if hook := hooks.get(type(root)):
        hook(root)
    while True:
        inner = opened[-1]
        for node in inner.rest:
            kind = type(node)
            if kind in kept or (passes_blocks and isinstance(node, SeqStmt) and node.kinds <= kept):
                inner.done.append(node)
                continue
            if not is_deep and isinstance(node, Expr):
                inner.done.append(_expression(node, rules, hooks, kept, _DEEP))
                continue
            if hook := hooks.get(kind):
                hook(node)
            children = () if level is Stmt and kind in _LEAVES else _below(node, level)
            if children:
                opened.append(_Open(node, children))
                break
            rule = rules.get(kind)
            inner.done.append(node if rule is None else _with_span(rule(node), node))
        else:
            opened.pop()
            result = _closed(inner, rules, level)
            if not opened:
                return SeqStmt(result) if isinstance(result, tuple) else result
            opened[-1].done.append(result)


def _expression(
    node: Node, rules: Rules, hooks: Hooks, kept: frozenset[type[Node]], depth: int
) -> Node | tuple[Stmt, ...]:
    """An expression, rewritten recursively to `depth` levels; `kept`: atoms without a rule."""
    if not depth:
        return _rewritten(node, rules, hooks, Node, is_deep=True)
    if hooks and (hook := hooks.get(type(node))):
        hook(node)
    children = node.children()
    if not children:
        return rules[type(node)](node) if type(node) in rules else node
    done: list[Any] = []
    for each in children:
        kind = type(each)
        if kind in _ATOMS and kind not in hooks:
            done.append(each if kind in kept else rules[kind](each))
        else:
            done.append(_expression(each, rules, hooks, kept, depth - 1))
    rebuilt: Node = node
    if any(map(is_not, done, children)):
        rebuilt = type(node)(*done) if isinstance(node, Binary) else rebuild(node, done)
    rule = rules.get(type(rebuilt))
    return rebuilt if rule is None else rule(rebuilt)


class _Open:
    """A node whose children are being rewritten: those to come, and the results so far."""

    __slots__ = ("children", "done", "node", "rest")

    def __init__(self, node: Node, children: Sequence[Node]) -> None:
        self.node = node
        self.children = children
        self.rest = iter(children)
        self.done: list[Node | tuple[Stmt, ...]] = []


def _below(node: Node, level: type[Node]) -> Sequence[Node]:
    children = node.children()
    if level is Node or type(node) is SeqStmt:  # all children of a block are statements
        return children
    return [child for child in children if isinstance(child, level)]


def _closed(opened: _Open, rules: Mapping[type[Node], Rule], level: type[Node]) -> Node | tuple[Stmt, ...]:
    """The result for a node after all its children."""
    node = rebuilt = opened.node
    if any(map(is_not, opened.done, opened.children)):
        rebuilt = rebuild(node, opened.done, level)
    rule = rules.get(type(rebuilt))
    return rebuilt if rule is None else _with_span(rule(rebuilt), node)


def rebuild(node: N, children: Iterable[Node | tuple[Stmt, ...]], level: type[Node] = Node) -> N:
    """`node` with other children of type `level`, in the order of `node.children()`; all others are kept."""
    if type(node) is SeqStmt:
        return node.replaced(stmts=_flat(children))
    rest = iter(children)
    changes: dict[str, object] = {}
    for name in node.CHILDREN:
        old = getattr(node, name)
        if isinstance(old, tuple):
            changes[name] = _flat([next(rest) if isinstance(each, level) else each for each in old])
        elif isinstance(old, level):
            changes[name] = _as_block(next(rest)) if isinstance(old, SeqStmt) else next(rest)
    return node.replaced(**changes)


def _as_block(new: Node | tuple[Stmt, ...]) -> Node:
    if isinstance(new, tuple):
        return SeqStmt(new)
    return SeqStmt((new,)) if isinstance(new, Stmt) and not isinstance(new, SeqStmt) else new


def _flat(nodes: Iterable[Node | tuple[Stmt, ...]]) -> tuple[Node, ...]:
    flat: list[Node] = []
    for node in nodes:
        if isinstance(node, tuple):
            flat += node
        else:
            flat.append(node)
    return tuple(flat)


def _with_span(result: Node | tuple[Stmt, ...], origin: Node) -> Node | tuple[Stmt, ...]:
    span = getattr(origin, "span", None)
    if span is None or result is origin:
        return result
    if isinstance(result, tuple):
        return tuple(_spanned(stmt, span) for stmt in result)
    return _spanned(result, span) if isinstance(result, Stmt) else result


def _spanned(stmt: Stmt, span: Span) -> Stmt:
    if isinstance(stmt, SeqStmt):
        # The block will be spliced into the one around it.
        stmts = tuple(_spanned(each, span) for each in stmt.stmts)
        return SeqStmt(stmts, span=stmt.span or span)
    return stmt if stmt.span is not None else stmt.replaced(span=span)


def substitute(root: N, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """`root` with variables and buffers replaced.

    A buffer declared in `root` whose shape mentions a replaced variable becomes a new buffer with the new shape.
    """
    return cast(N, rewrite(root, Substitution(variables, buffers or {}).rules()))


class Substitution:
    """Rules that substitute in program order, and keep track of buffers that change because their shapes do."""

    def __init__(self, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        self.variables = dict(variables)
        self.buffers = dict(buffers)

    def rules(self) -> dict[type[Node], Rule]:
        return {
            Var: self.variable,
            Load: self.use,
            Store: self.use,
            BufferRef: self.use,
            AttrStmt: self.use,
            View: self.view,
            Allocate: self.allocate,
        }

    def shape(self, buffer: Buffer) -> tuple[Expr, ...]:
        """The extents of a buffer, which may contain loads, with replacements substituted."""
        return tuple(substitute(extent, self.variables, self.buffers) for extent in buffer.shape)

    def declare(self, buffer: Buffer) -> Buffer:
        """The new buffer for a definition of `buffer`."""
        if buffer not in self.buffers:
            shape = self.shape(buffer)
            if any(new is not old for new, old in zip(shape, buffer.shape, strict=True)):
                self.buffers[buffer] = replace(buffer, shape=shape)
        return self.buffers.get(buffer, buffer)

    def variable(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def use(self, node: Load | Store | BufferRef | AttrStmt) -> Node:
        buffer = self.buffers.get(node.buffer, node.buffer) if node.buffer is not None else None
        return node if buffer is node.buffer else node.replaced(buffer=buffer)

    def view(self, node: View) -> Stmt:
        source = self.buffers.get(node.source, node.source)
        buffer = self.declare(node.buffer)
        same = source is node.source and buffer is node.buffer
        return node if same else node.replaced(source=source, buffer=buffer)

    def copied(self, stmt: Allocate | Let | Store) -> Stmt:
        """A copy of a statement that defines new objects, which later copies use."""
        if isinstance(stmt, Allocate):
            self.buffers[stmt.buffer] = replace(stmt.buffer, shape=self.shape(stmt.buffer))
        made: Node = rewrite(stmt, self.rules())
        assert isinstance(made, Stmt)
        if isinstance(made, Let):
            var = self.variables[made.var] = Var(made.var.name, made.var.dtype)
            return made.replaced(var=var)
        return made

    def allocate(self, node: Allocate) -> Stmt:
        buffer = self.declare(node.buffer)
        return node if buffer is node.buffer else node.replaced(buffer=buffer)


def values_of(lets: Iterable[Let]) -> dict[Var, Expr]:
    """The values of a sequence of lets, in terms of what is defined before the first one."""
    values: dict[Var, Expr] = {}
    for let in lets:
        values[let.var] = substitute(let.value, values)
    return values


class Renamer(Substitution):
    """Replaces a variable or buffer by a new object from its second definition on.

    Scopes nest, so a use refers to the last definition visited.
    """

    def __init__(self, before: Collection[Buffer | Var] = ()) -> None:
        """`before`: objects that were defined earlier."""
        super().__init__({}, {})
        self.defined: set[Buffer | Var] = {*before}

    def rename(self, root: N) -> N:
        rules: dict[type[Node], Rule] = {**self.rules(), Let: self.let, LetExpr: self.bound, For: self.bound}
        return cast(N, rewrite(root, rules, enter={For: self.bind, LetExpr: self.bind}))

    def bind(self, node: For | LetExpr | Let) -> None:
        if node.var in self.defined:
            self.variables[node.var] = Var(node.var.name, node.var.dtype, node.var.dim)
        self.defined.add(node.var)

    def bound(self, node: For | LetExpr | Let) -> Node:
        var = self.variable(node.var)
        return node if var is node.var else node.replaced(var=var)

    def let(self, node: Let) -> Node:
        self.bind(node)
        return self.bound(node)

    def declare(self, buffer: Buffer) -> Buffer:
        shape = self.shape(buffer)
        moved = any(new is not old for new, old in zip(shape, buffer.shape, strict=True))
        if moved or buffer in self.defined:
            self.buffers[buffer] = replace(buffer, shape=shape)
        self.defined.add(buffer)
        return self.buffers.get(buffer, buffer)
