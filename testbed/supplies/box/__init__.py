"""The machines' box: a disk with Debian, as Vagrant takes it, made of distribution packages alone.

``recipe`` says of which packages, and whether they are what they were; ``building`` makes it.
"""

NAME = "concorde/debian"
