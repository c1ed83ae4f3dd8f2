"""How much storage the kernels' temporaries take, alone and shared."""

from __future__ import annotations

import pytest

import tirlite as tl
from tirlite.kernels.blur import blur, blur_u8
from tirlite.kernels.chain import gated, smoothstep
from tirlite.kernels.gallery import CASES
from tirlite.kernels.harris import harris
from tirlite.kernels.histogram import histogram
from tirlite.kernels.jacobi import jacobi
from tirlite.kernels.matmul import matmul, matmul_tiled
from tirlite.kernels.softmax import softmax

each_kernel = pytest.mark.parametrize("kernel", [case.kernel for case in CASES], ids=lambda kernel: kernel.name)


def bytes_of(kernel: tl.Kernel, strategy: str, *, in_place: bool = False) -> str:
    """What loops as they are written need."""
    target = tl.Target.host(workers=1)
    made = tl.compile(kernel, strategy=strategy, in_place=in_place, target=target, schedule=None)
    return str(made.plan.total)


@pytest.mark.parametrize(
    ("kernel", "alone", "shared", "in_place"),
    [
        (smoothstep, "16*n", "12*n", "8*n"),
        (gated, "16*n", "8*n", "8*n"),
        (softmax, "8*m*n + 8*n", "8*m*n", "4*m*n + 4*n"),
        (blur_u8, "6*m*n", "4*m*n", "4*m*n"),
        (harris, "44*m*n", "20*m*n", "16*m*n"),
    ],
    ids=lambda value: value.name if isinstance(value, tl.Kernel) else None,
)
def test_temporaries_that_are_dead_make_room(kernel: tl.Kernel, alone: str, shared: str, in_place: str) -> None:
    assert bytes_of(kernel, "none") == alone
    assert bytes_of(kernel, "share") == shared
    assert bytes_of(kernel, "share", in_place=True) == in_place


@pytest.mark.parametrize(
    ("kernel", "needed"),
    [(matmul, "0"), (matmul_tiled, "768"), (histogram, "0"), (blur, "8*m*n"), (jacobi, "16*m*n")],
    ids=lambda value: value.name if isinstance(value, tl.Kernel) else None,
)
def test_what_is_live_together_lies_apart(kernel: tl.Kernel, needed: str) -> None:
    assert bytes_of(kernel, "none") == bytes_of(kernel, "share") == needed


def test_tiles_are_there_once_a_worker() -> None:
    assert tl.compile(matmul_tiled, strategy="share", target=tl.Target.host(workers=3)).plan.total == 3 * 768


@each_kernel
def test_share_reaches_the_lower_bound(kernel: tl.Kernel) -> None:
    assert tl.compile(kernel, strategy="share").plan.proved_optimal


def test_corners_are_found_in_five_images() -> None:
    plan = tl.compile(harris, strategy="share", in_place=False, schedule=None).plan
    assert len(plan.placements) == 11
    assert len(plan.pools) == 5
    assert plan.gap == 0
