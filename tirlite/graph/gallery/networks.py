"""All networks of the gallery, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tirlite.graph.gallery.cnn import cnn
from tirlite.graph.gallery.lstm import lstm
from tirlite.graph.gallery.mlp import mlp
from tirlite.graph.gallery.network import Network
from tirlite.graph.gallery.resnet import resnet50
from tirlite.graph.gallery.thousand import thousand
from tirlite.graph.gallery.transformer import transformer

# Those that take no time to run, and those of everyday size.
SMALL: Mapping[str, Callable[[], Network]] = MappingProxyType(
    {"mlp": mlp, "cnn": cnn, "lstm": lstm, "transformer": transformer}
)
LARGE: Mapping[str, Callable[[], Network]] = MappingProxyType({"resnet50": resnet50, "thousand": thousand})
