"""`concorde-networks`: a second plugin, last in a list, which gives pods more interfaces by any CNI plugin.

Which ones a pod's annotation names, as the Network Plumbing Working Group's de-facto standard says (version
1.3). Every pod of a node asks it, and most have no such annotation: those are answered by a few lines of
shell (plugin/build.py), before any Python starts.
"""
