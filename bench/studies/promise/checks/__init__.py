"""The checks of the promise kit, a module for each group; ``known`` has them in their order."""
