"""Nodes as virtual machines that Vagrant makes from the ``Vagrantfile``."""
