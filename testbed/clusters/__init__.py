"""Clusters that exist already, by kubeconfig: what is made there are pods, in a namespace of their own."""
