"""What is known of local integers at each access: counters of whiles, halved ranges, what loops count."""

from __future__ import annotations

from textwrap import indent

import pytest
from every import every

import tirlite as tl

PROVED = """
for i in range(n):
    for q in range(-2, 3):
        j = i + q
        if j < 0:
            j = 0
        elif j >= n:
            j = n - 1
        y[i] += x[j]
---
for i in range(m):
    for q in range(n):
        j = i + 2 * q - 5
        if j >= n:
            j = n - 1
        if j < 0:
            j = 0
        y[j] = w[i]
---
i = tl.i64(0)
while i < n and x[i] > 0:
    if x[i] > 5:
        break
    y[i] = 1
    i += 2
---
for i in range(n):
    if x[i] < 0:
        continue
    if x[i] > 3:
        y[i] = 0
        break
---
i = n - 1
while i >= 0:
    y[i] = x[i]
    i -= 1
---
low = tl.i64(0)
high = tl.i64(0) + n
while low < high:
    middle = (low + high) // 2
    if x[middle] < 3:
        low = middle + 1
    else:
        high = middle
---
best = tl.i64(0)
for i in range(1, n):
    if x[i] > x[best]:
        best = i
y[best] = 1
---
for i in range(n - 1):
    least = tl.i64(i)
    for j in range(n - 1, i, -1):
        if x[j] < x[least]:
            least = tl.i64(j)
    for j in range(i + 1, n):
        if x[j] < x[least]:
            least = tl.i64(j)
    y[least] = 1
---
last = tl.i64(0)
for i in range(n):
    if x[i] > 0:
        y[last] = x[i]
        last += 1
---
last = tl.i64(0) + n
for i in range(n):
    last -= 1
    y[last] = x[i]
---
last = tl.i64(0)
for i in range(n):
    for j in range(m):
        z[last] = x[i]
        last += 1
---
last = tl.i64(0)
for i in range(n):
    if x[i] == 0:
        break
    if x[i] > 0:
        y[last] = x[i]
        last += 1
---
i = tl.i64(0)
last = tl.i64(0) + n
while i < n:
    last -= 1
    y[last] = x[i]
    i += 1
---
at = tl.i64(0)
for i in range(m):
    y[at] = w[i]
    at = (at + 1) % n
---
at = m % n
tries = tl.i64(0)
while tries < n and y[at] != 0:
    at = at + 1 if at + 1 < n else 0
    tries += 1
y[at] = 1
---
at = n - 1
for i in range(m):
    at = at - 1 if at > 0 else n - 1
    y[at] = w[i]
---
for i in range(n):
    j = i - 2
    j = -j if j < 0 else j
    last = i + 2
    last = 2 * (n - 1) - last if last >= n else last
    y[i] = x[min(j, n - 1)] + x[max(last, 0)]
---
i = tl.i64(0)
j = tl.i64(0)
last = tl.i64(0)
while i < n and j < m:
    if x[i] <= w[j]:
        v[last] = x[i]
        i += 1
    else:
        v[last] = w[j]
        j += 1
    last += 1
while i < n:
    v[last] = x[i]
    i += 1
    last += 1
while j < m:
    v[last] = w[j]
    j += 1
    last += 1
---
i = tl.i64(0)
j = tl.i64(0)
last = tl.i64(0)
while i < n and j < m:
    if x[i] < w[j]:
        i += 1
    elif x[i] > w[j]:
        j += 1
    else:
        y[last] = x[i]
        last += 1
        i += 1
        j += 1
---
i = tl.i64(0)
last = tl.i64(0)
while i < n:
    y[last] = x[i]
    if x[i] < 0:
        i += 1
    elif x[i] < 9 and i + 2 < n:
        i += 3
    else:
        i += 2
    last += 1
---
i = tl.i64(0)
last = tl.i64(0)
while i < n:
    j = i + 1
    while j < n and x[j] == x[i]:
        j += 1
    y[last] = x[i]
    last += 1
    i = j
---
low = tl.i64(0)
middle = tl.i64(0)
high = n - 1
while middle <= high:
    if x[middle] < 0:
        y[low] = x[middle]
        low += 1
        middle += 1
    elif x[middle] < 1:
        middle += 1
    else:
        y[high] = x[middle]
        high -= 1
---
top = tl.i64(0)
for i in range(n):
    while top > 0 and y[top - 1] < x[i]:
        top -= 1
    y[top] = x[i]
    top += 1
---
last = tl.i64(0)
for i in range(n):
    v[last] = x[i]
    if x[i] > 0 and last + 1 < n + m:
        last += 1
---
last = tl.i64(0)
for i in range(n):
    if x[i] > 0:
        z2[last] = x[i]
        last += 1
    else:
        z2[last] = x[i]
        z2[last + 1] = 0
        last += 2
"""
# And at which of them one iteration more, or a step that may be anything, is not overlooked.
OPEN = """
i = tl.i64(0)
while i <= n:
    y[i] = 1
    i += 1
---
i = tl.i64(0)
while i < n:
    i += 1
    y[i] = 1
---
i = tl.i64(0)
while i < n:
    y[i] = 1
    i += k
---
i = tl.i64(0)
while i < n:
    y[i] = 1
    if x[0] > 0:
        i -= 1
    else:
        i += 1
---
last = tl.i64(0)
for i in range(n):
    if x[i] > 0:
        last += 1
    y[last] = x[i]
---
last = tl.i64(0)
for i in range(n):
    y[last] = x[i]
    last += 1
    if x[i] > 0:
        last += 1
---
last = tl.i64(0)
for i in range(n):
    for j in range(m):
        y[last] = x[i]
        last += 1
---
i = tl.i64(0)
last = tl.i64(0) + n
while i <= n:
    last -= 1
    y[last] = x[0]
    i += 1
---
i = tl.i64(0)
last = tl.i64(0)
while i < n:
    y[last] = x[0]
    last += 1
    if x[i] > 0:
        i += 1
---
best = tl.i64(0)
for i in range(n + 1):
    best = i
y[best] = 1
---
i = tl.i64(0) + 9223372036854775807
while i > 0:
    i += 1
    if i < 5:
        y[i] = 0
---
at = tl.i64(0)
for i in range(m):
    y[at] = w[i]
    at = (at + 1) % (n + 1)
---
at = tl.i64(0)
for i in range(m):
    y[at] = w[i]
    at = at + 1 if at < n else 0
---
at = tl.i64(0) + k
for i in range(m):
    at = at + 1 if at + 1 < n else 0
    y[at] = w[i]
---
at = k + 5 if k > 0 else 0
if at < n:
    y[at] = 0
---
for i in range(n):
    j = i - 2
    j = -j if j <= 0 else j - 3
    y[j] = 0
---
for i in range(n):
    for q in range(-2, 3):
        j = i + q
        if j < 0:
            j = 0
        elif j > n:
            j = n - 1
        y[j] = 0
---
for i in range(n):
    for q in range(-2, 3):
        j = i + q
        if j <= 0:
            j = 1
        if j >= n:
            j = n - 1
        y[j] = 0
        if j > 0:
            j -= 2
        y[j] = 0
---
i = tl.i64(0)
j = tl.i64(0)
last = tl.i64(0)
while i <= n and j <= m:
    if x[0] <= 0:
        i += 1
    else:
        j += 1
    v[last] = x[0]
    last += 1
---
i = tl.i64(0)
last = tl.i64(0)
while i < n:
    y[last] = x[i]
    if x[i] < 0:
        last += 1
    elif x[i] < 9:
        last += 2
    i += 1
---
i = tl.i64(0)
last = tl.i64(0)
while i < n:
    j = i
    while j < n and x[j] == x[i]:
        j += 1
    y[last] = x[i]
    last += 1
    i = j + 1 if k > 0 else j
---
top = tl.i64(0)
for i in range(n):
    while top >= 0 and y[top] < x[i]:
        top -= 1
    y[top] = x[i]
    top += 1
---
low = tl.i64(0)
middle = tl.i64(0)
while middle < n:
    if x[middle] < 0:
        low += 1
    elif x[middle] > 0:
        low -= 1
    middle += 1
    y[low] = 0
---
i = tl.i64(0)
last = 9223372036854775000
while i < n:
    last += 1
    i += 1
    if last < 0:
        y[last + 9223372036854775807] = 0
"""


def _verdicts(body: str) -> set[str]:
    params = (
        "x: tl.f32[n], k: tl.i64, y: tl.f32[n], z: tl.f32[n * m], w: tl.f32[m], v: tl.f32[n + m], z2: tl.f32[2 * n]"
    )
    header = f'n, m = tl.dims("n m")\n\n@tl.kernel\ndef f({params}):\n'
    return {each.how for each in tl.compile(tl.parse(header + indent(body.strip(), "    "))).safety}


@every("body", PROVED.split("---"))
def test_a_local_that_stays_in_bounds_is_proved(body: str) -> None:
    assert _verdicts(body) == {"proved"}


@pytest.mark.parametrize("body", OPEN.split("---"))
def test_a_local_that_may_leave_its_bounds_is_not(body: str) -> None:
    assert not _verdicts(body) <= {"proved"}
