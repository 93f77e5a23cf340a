"""Validate RO-Crates offline: PYTHON validate_crate.py CACHE CRATE ..., where roc-validator is installed.

The cache is filled with the context of RO-Crate 1.1, which the wheel of rocrate 0.13.0 has; nothing else is
loaded from anywhere.
"""

# mypy: ignore-errors
# Its packages are in an environment of their own: requirements/crate.txt.
from __future__ import annotations

import sys
from importlib.resources import files
from io import BytesIO
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator import models, services
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


class Wheel(HTTPAdapter):
    """Answers every request with the context."""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        """Return the answer."""
        content = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()
        headers = {"Content-Type": "application/ld+json"}
        raw = HTTPResponse(BytesIO(content), headers, 200, preload_content=False, request_url=request.url)
        return self.build_response(request, raw)


def fill(cache: str) -> None:
    """Put the context where the validator looks for what it would load."""
    session = CachedSession(cache_name=cache, backend="sqlite", expire_after=-1)
    session.mount(CONTEXT, Wheel())
    session.get(CONTEXT).raise_for_status()


def main(cache: str, crates: list[str]) -> int:
    """Print what is wrong with each crate; return 1 if something is."""
    fill(cache)
    wrong = 0
    for crate in crates:
        result = services.validate(
            models.ValidationSettings(
                rocrate_uri=crate,
                profile_identifier="process-run-crate-0.5",
                requirement_severity=models.Severity.REQUIRED,
                offline=True,
                cache_path=cache,
            )
        )
        print(f"{crate}: {len(result.executed_checks)} checks")
        for issue in result.get_issues():
            wrong = 1
            print(f"{crate}: {issue.check.identifier}: {issue.message}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
