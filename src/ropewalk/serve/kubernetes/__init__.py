"""Kubernetes beside the controller: kube-scheduler asks it which nodes the pods of a job may have."""
