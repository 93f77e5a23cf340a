"""Certificates for what speaks TLS in a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def openssl_makes(certificate: Path, key: Path, *options: str) -> None:
    """Make a certificate that vouches for itself, and its key."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    command += ["-days", "2", "-subj", "/CN=api", "-addext", "subjectKeyIdentifier=none", *options]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
