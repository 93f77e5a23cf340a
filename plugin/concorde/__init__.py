"""The Concorde CNI plugin: a pod network which keeps the bandwidth a pod was promised.

It runs on bare nodes with Debian's or Ubuntu's own Python 3 (3.9 or newer), from the standard library
alone, and one process start per pod is on the way of every pod start: modules which cost milliseconds to
import (argparse, dataclasses, ipaddress, pathlib, subprocess, typing, hashlib) are left out on purpose.
"""

VERSION = "0.1.0"
