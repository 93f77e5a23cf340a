"""The queue of a link that has a rate: a token bucket, as ``tc`` is given it."""

from __future__ import annotations

# A link's bucket and queue, in time, so that they mean the same at every rate. The bucket must hold a whole
# GSO packet (64 KiB), or the kernel takes it apart at a cost that falsifies what is measured behind it. And
# it must last longer than a busy machine's timers are late, or a link would lose that much of its rate for
# good.
BUCKET_SECONDS = 0.005
SMALLEST_BUCKET = 128 * 1024  # bytes
QUEUE_SECONDS = 0.01


def bucket(rate: int) -> str:
    """Return the words for ``tc qdisc add`` of a link of so many bits per second."""
    size = max(SMALLEST_BUCKET, round(rate / 8 * BUCKET_SECONDS))
    limit = size + round(rate / 8 * QUEUE_SECONDS)
    return f"tbf rate {rate}bit burst {size} limit {limit}"
