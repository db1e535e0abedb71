"""fuseline for PyTorch models: a module per operator (``fuseline.torch.nn``), and ``replace`` for models that exist.

Importing this imports torch; ``import fuseline`` alone does not.
"""

from . import nn
from ._replace import Change, Replacement, Skip, replace

__all__ = ["Change", "Replacement", "Skip", "nn", "replace"]
