"""Conditions on rows as text, such as "year >= 2020 and city != 'Rome'", as expressions of pyarrow."""

from __future__ import annotations

import ast
import operator
from typing import Any

from cutsvm._utils.text import listed
from cutsvm.io.formats.arrow_values import arrow, kind_of

_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def parse_filter(condition: Any, schema: Any) -> Any:
    """The expression of a text for a table of this schema; None and expressions of pyarrow are returned as they are.

    A text has names of columns, numbers, texts in quotes, comparisons, `in` with a list, `is None` (missing), and, or,
    not and parentheses, in Python's syntax. A name that is no word of Python is written in backquotes: `unit price`.
    A text that is compared with a column of dates is a date, as '2024-12-31'. Nothing is executed.
    """
    if not isinstance(condition, str):
        return condition
    names: list[str] = []
    pieces = condition.split("`")
    if len(pieces) % 2 == 0:
        raise ValueError(f"filter {condition!r}: a backquote has no partner")
    for place in range(1, len(pieces), 2):
        names.append(pieces[place])
        pieces[place] = f"column_in_backquotes_{len(names) - 1}"
    try:
        tree = ast.parse("".join(pieces).strip(), mode="eval")
        return _Reader(condition, names, schema).condition(tree.body)
    except OverflowError:
        raise ValueError(f"filter {condition!r}: a number is too large") from None
    except (SyntaxError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise ValueError(f"filter {condition!r}: not a condition ({reason}); expected as in {_EXAMPLE}") from None


_EXAMPLE = "\"year >= 2020 and city != 'Rome'\""


class _Reader:
    def __init__(self, text: str, names: list[str], schema: Any) -> None:
        self._text, self._schema = text, schema
        self._names = {f"column_in_backquotes_{place}": name for place, name in enumerate(names)}
        self._compute = arrow("filter", "pyarrow.compute")

    def condition(self, node: ast.expr) -> Any:
        """A comparison, or conditions joined by and, or, not."""
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            first, *others = map(self.condition, node.values)
            for other in others:
                first = join(first, other)
            return first
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.condition(node.operand)
        if isinstance(node, ast.Name):
            dtype = self._schema.field(self._column(node)).type
            if not arrow("filter").types.is_boolean(dtype):
                raise self._refused(node, "a comparison, or a column of true and false")
            return self._field(node)
        if not isinstance(node, ast.Compare):
            raise self._refused(node)
        operands = [node.left, *node.comparators]
        parts = [self._comparison(*three) for three in zip(operands, node.ops, operands[1:], strict=False)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole

    def _comparison(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(how, ast.In | ast.NotIn):
            if not isinstance(right, ast.List | ast.Tuple | ast.Set):
                raise self._refused(right, "a list after in")
            values = [self._value(item, left) for item in right.elts]
            if len({isinstance(value, str) for value in values}) > 1:
                raise self._refused(right, "a list of numbers or a list of texts")
            found = self._field(left).isin(values)
            return found if isinstance(how, ast.In) else ~found
        if isinstance(how, ast.Is | ast.IsNot):
            if not isinstance(right, ast.Constant) or right.value is not None:
                raise self._refused(right, "None after is")
            missing = self._field(left).is_null(nan_is_null=True)
            return missing if isinstance(how, ast.Is) else ~missing
        if not isinstance(left, ast.Name) and not isinstance(right, ast.Name):
            raise self._refused(left, "the name of a column on one side of a comparison")
        return _COMPARE[type(how)](self._operand(left, right), self._operand(right, left))

    def _operand(self, node: ast.expr, other: ast.expr) -> Any:
        return self._field(node) if isinstance(node, ast.Name) else self._compute.scalar(self._value(node, other))

    def _field(self, node: ast.expr) -> Any:
        if not isinstance(node, ast.Name):
            raise self._refused(node, "the name of a column")
        return self._compute.field(self._column(node))

    def _column(self, node: ast.Name) -> str:
        name = self._names.get(node.id, node.id)
        if name not in self._schema.names:
            raise ValueError(
                f"filter {self._text!r}: there is no column {name!r}; the columns are {listed(self._schema.names)}"
            )
        return name

    def _value(self, node: ast.expr, other: ast.expr) -> Any:
        """A number, a text or, beside a column of dates or times, one of them."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._value(node.operand, other)
            if isinstance(value, int | float):
                return -value
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            dtype = self._schema.field(self._column(other)).type if isinstance(other, ast.Name) else None
            if not isinstance(node.value, str) or dtype is None or kind_of(dtype) != "date":
                return node.value
            pa = arrow("filter")
            try:
                return pa.scalar(node.value).cast(dtype)
            except pa.ArrowInvalid:
                raise self._refused(node, "a date as '2024-12-31'") from None
        raise self._refused(node, "a number or a text in quotes")

    def _refused(self, node: ast.expr, expected: str = "comparisons joined by and, or, not") -> ValueError:
        found = ast.unparse(node)
        for mark, name in self._names.items():
            found = found.replace(mark, f"`{name}`")
        return ValueError(f"filter {self._text!r}: expected {expected}, found {found[:60]}; an example: {_EXAMPLE}")
