"""Concorde, a CNI plugin that gives a pod the bandwidth its deployment file asks for."""
