"""CuPy arrays for the tests."""


def filled_late(cupy):
    """(an array on the current device, a stream there that makes it 1.5): what reads it on another stream finds 0."""
    x = cupy.zeros(1 << 26, cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(20):
            x *= 0.5
        x.fill(1.5)
    return x, stream
