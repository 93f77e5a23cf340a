"""The kinds of pod networks that come with the testbed, one module each; see docs/reference/backends.md."""
