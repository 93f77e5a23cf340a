"""The project as one package to install: the repository's tree lies inside it, whole and as it is.

So an installation leaves one name in site-packages, and no ``bench`` or ``testbed`` that might be another's.
In a checkout there is no tree inside: there the package stands beside what it would hold.
"""
