"""The paper's burst, where a class limits: 10 MiB at 1 Gbit/s (fig. 10), and as long at lower rates."""

BURST = 10 * 2**20  # bytes
BURST_MILLISECONDS = 84  # how long that lasts at the least of the paper's rates, 1 Gbit/s
