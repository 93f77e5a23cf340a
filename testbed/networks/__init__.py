"""How packets go, as text for ``ip``, ``bridge``, ``tc`` and ``nft``: rendered here, run elsewhere."""
