"""Job plugins (V3): what the frameworks that people run find in their pods. One plugin a file."""
