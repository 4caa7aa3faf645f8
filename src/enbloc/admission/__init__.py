"""What the API does to an object before it keeps it: fill in what was left out, refuse what is wrong."""
