"""Splicing: procedures over cells become one kernel."""

from tirlite.solver.engine import kernel_text

LIMIT = 10


def entry(s, most):
    total, count = s.total, LIMIT
    for i in range(most):
        if s.values[i] < count:
            add(s, s.values[i])
            add(s, i)


def add(s, amount):
    """A local `twice` for each copy."""
    total = s.total
    twice = amount * 2
    total[0] = total[0] + twice


def test_calls_become_bodies_with_locals_of_their_own():
    assert kernel_text(entry, ("total", "values")).splitlines() == [
        'length_total = tl.dim("length_total")',
        'length_values = tl.dim("length_values")',
        "",
        "@tl.kernel",
        "def entry(total: tl.i64[length_total], values: tl.i64[length_values], most: tl.i64):",
        "    count_1 = 10",
        "    for i_1 in range(most):",
        "        if values[i_1] < count_1:",
        "            amount_2 = values[i_1]",
        "            twice_2 = amount_2 * 2",
        "            total[0] = total[0] + twice_2",
        "            twice_3 = i_1 * 2",
        "            total[0] = total[0] + twice_3",
    ]
