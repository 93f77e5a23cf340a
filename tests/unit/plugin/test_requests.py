from __future__ import annotations

import pytest
from concorde import requests


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("K8S_POD_NAME=web;IgnoreUnknown=1;K8S_POD_NAMESPACE=default", "default/web"),
        ("K8S_POD_NAME=web", ""),
        ("K8S_POD_NAMESPACE=a b;K8S_POD_NAME=web", ""),
        ("", ""),
        ("=;;=", ""),
    ],
)
def test_the_pods_name_is_taken_from_the_runtimes_arguments(arguments: str, name: str) -> None:
    assert requests.pod_name(arguments) == name
