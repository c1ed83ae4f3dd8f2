"""The onnx package's own cases: what can be read computes what the standard says."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("onnx")

from tirlite.bench.onnx_cases import FAILED, KINDS, PASS, WRONG, Outcome, outcome  # noqa: E402

PARTS = 24

# As few as show that each family of operators is compiled: the kernels have tests of their own.
COMPILED = """
    test_abs test_add_bcast test_argmax_keepdims_example test_averagepool_2d_ceil test_basic_conv_with_padding
    test_batchnorm_example test_cast_FLOAT_to_FLOAT16 test_clip_example test_concat_2d_axis_1 test_convtranspose_1d
    test_cumsum_2d_axis_0 test_dequantizelinear_axis test_depthtospace_example test_einsum_batch_matmul
    test_gather_elements_0 test_gathernd_example_int32 test_gemm_all_attributes test_gru_with_initial_bias
    test_instancenorm_example test_layer_normalization_2d_axis1 test_lrn test_lstm_with_initial_bias
    test_matmul_bcast test_matmulinteger test_maxpool_2d_dilations test_mod_mixed_sign_int32 test_onehot_with_axis
    test_quantizelinear_axis test_range_int32_type_negative_delta test_reduce_l2_keep_dims_example
    test_reflect_pad test_resize_upsample_sizes_nearest test_scatter_elements_with_axis test_scatternd_add
    test_slice_negative_axes test_softmax_axis_1 test_split_equal_parts_2d test_tile test_top_k test_tril_pos
    test_where_example test_attention_4d
""".split()


SLOWLY_POOLED = (1, 3, 32, 32, 32)


def random_tensor(*shape: int, normal: Callable[..., Any] = np.random.randn) -> Any:
    """That of NumPy, but of a few elements in place of those that the package takes seconds to pool, one by one."""
    return normal(*(1, 3, 6, 6, 6) if shape == SLOWLY_POOLED else shape)


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    loader = pytest.importorskip("onnx.backend.test.loader")
    without_texts = patch("onnx.backend.test.case.base.process_snippet")
    with warnings.catch_warnings(), without_texts, patch("numpy.random.randn", random_tensor):
        warnings.simplefilter("ignore")
        return {each.name: (kind, each) for kind in KINDS for each in loader.load_model_tests(kind=kind)}


def outcomes(cases: dict[str, Any], names: list[str], *, compiled: bool) -> list[Outcome]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [outcome(*cases[name], compiled=compiled) for name in names]


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_is_read_is_wrong(cases: dict[str, Any], part: int) -> None:
    found = outcomes(cases, sorted(cases)[part::PARTS], compiled=False)
    assert [each for each in found if each.state in (WRONG, FAILED)] == []
    assert sum(each.state == PASS for each in found) > 0.6 * len(found)


@pytest.mark.parametrize("name", COMPILED)
def test_native_code_gives_the_same(cases: dict[str, Any], name: str) -> None:
    if name not in cases:
        pytest.skip("this version of onnx has no such case")
    (found,) = outcomes(cases, [name], compiled=True)
    assert (found.state, found.why) == (PASS, "")
