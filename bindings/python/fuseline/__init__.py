"""fuseline: fused, memory-bound tensor operators."""
