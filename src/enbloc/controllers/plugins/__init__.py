"""Job plugins (V3): what frameworks such as PyTorch, MPI or Ray expect in their pods. One plugin a file."""
