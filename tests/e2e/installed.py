"""A part of edge in a real cluster, as who administers that installs it: by ``kubectl apply -k``."""

from __future__ import annotations

import os
from pathlib import Path

from testbed import resources
from testbed.access.place import InNamespace
from testbed.kubernetes.control_plane import endpoint
from testbed.supplies.images import Image
from testbed.testbed import Testbed
from tests.e2e.conftest import PATIENCE_SECONDS, prompt

WORKER = "worker-01"  # where what is installed runs, and whose containerd has the images
NEXT = "9.9.9"  # another version
KUSTOMIZATION = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
bases: [{base}]
patchesStrategicMerge: [cluster.yaml]
images: [{{name: {image}, newTag: {version}}}]
"""
CLUSTER_WIDE = (
    "apiservices,clusterroles,clusterrolebindings,customresourcedefinitions,namespaces,priorityclasses,"
    "mutatingwebhookconfigurations,validatingwebhookconfigurations"
)


def cluster_wide(pair: Testbed) -> set[str]:
    """The names of all that an installation in the first cluster could leave."""
    client = next(client for client in pair.clients if client.cluster == "a")
    return set(client.run("get", CLUSTER_WIDE, "--output=name").stdout.split())


class Installed:
    """A part of edge, in a testbed's cluster a, and the directory of who administers that.

    ``cluster`` is what that person says of it: a patch that may name the worker and the API; ``more``
    is said besides in the kustomization. The worker has a pod.
    """

    def __init__(
        self,
        pair: Testbed,
        directory: Path,
        part: str,
        image: Image,
        cluster: str,
        more: str = "",
        worker: str = WORKER,
    ) -> None:
        self.client = next(client for client in pair.clients if client.cluster == "a")
        self.directory = directory
        self._deploy, self._image = resources.EDGE / "deploy" / part, image
        self.space = f"concorde-{part}"
        self.in_space = f"--namespace={self.space}"
        host, port = endpoint(pair.addressing, "a")
        self._more = more.format(host=host, port=port, services=pair.addressing.service_range("a"))
        (directory / "cluster.yaml").write_text(cluster.format(worker=worker, host=host, port=port))
        places = [place for place in pair.networks.values() if isinstance(place, InNamespace)]
        self.node = next(place.node for place in places if place.node.name == worker)
        images = ["ctr", "--namespace=k8s.io", "images"]
        self.node.run([*images, "import", str(image.archive)])
        self.node.run([*images, "tag", "--force", image.name, f"{image.name.rpartition(':')[0]}:{NEXT}"])

    def apply(self, version: str) -> None:
        """Install a version, and wait until it runs."""
        base = os.path.relpath(self._deploy, self.directory)
        image = self._image.name.rpartition(":")[0]
        text = KUSTOMIZATION.format(base=base, version=version, image=image) + self._more
        (self.directory / "kustomization.yaml").write_text(text)
        self.client.run("apply", "-k", str(self.directory))
        self.rolled_out()

    def rolled_out(self) -> None:
        """Wait until all that runs is as it was said last."""
        with prompt(self.client, self.space):
            kinds = self.client.run("get", self.in_space, "deployments,daemonsets", "--output=name").stdout
            for one in kinds.split():
                self.client.run("rollout", "status", self.in_space, one, timeout=PATIENCE_SECONDS)

    def delete(self, *options: str) -> None:
        """Take away all that is installed."""
        delete = ["delete", "-k", str(self.directory), "--ignore-not-found"]
        with prompt(self.client, self.space):
            self.client.run(*delete, *options, timeout=PATIENCE_SECONDS)

    def words(self) -> str:
        """What its programs say."""
        pods = self.client.run("get", self.in_space, "pods", "--output=name", check=False).stdout.split()
        said = (self.client.run("logs", self.in_space, pod, check=False).stdout for pod in pods)
        return "\n".join(said)
