"""The verbs of the command line: one thin task for each, a module for each group of them.

Each imports what does it when it is run, so that a list or a mistake costs none of it.
"""
