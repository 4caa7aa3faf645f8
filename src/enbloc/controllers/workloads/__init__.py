"""Kubernetes' own workload controllers (`apps`, `batch`) for the embedded cluster, where no kube-controller-manager
runs. On a real cluster they are never started.

    controller    the frame: objects, what they own, timers, refused writes
    owned         what every kind works with: an owner, what it owns, its writes
    pod_state     ready, available, active; which pod is deleted first
    replica_set, deployment (rolling_update), stateful_set, daemon_set (revisions), job (job_counts), cron_job (cron)

The real kube-controller-manager would be 100 MB more to install, and knows no virtual time. What is not built is
refused with the field's name, never dropped.
"""
