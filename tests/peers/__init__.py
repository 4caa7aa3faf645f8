"""What the test tables of other schedulers expect of topology-aware gangs, as facts in our own form."""
