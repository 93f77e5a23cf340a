"""The machines' box: a disk with Debian, as Vagrant takes it, made of distribution packages alone."""

NAME = "concorde/debian"
