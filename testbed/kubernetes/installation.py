"""What the installer in ``plugin/deploy`` calls what it makes in a cluster."""

from __future__ import annotations

CONFIGURATION = "concorde"  # namespace and name of the installer's ConfigMap; plugin/deploy

LIST, DIRECTORY = "concorde.conflist", "bin-dir"  # its keys
