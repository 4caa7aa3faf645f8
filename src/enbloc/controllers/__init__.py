"""Pure reconcilers: objects in, wanted changes out. The runtime carries the changes out and owns the clock."""
