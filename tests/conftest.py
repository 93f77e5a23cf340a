"""What all tests share."""

import signal

# A shell starts what is to run in the background with SIGINT ignored, and so would start whatever tests
# start, to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
