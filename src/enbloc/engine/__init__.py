"""The scheduler, pure: state in, decisions out. No I/O, no clock of its own, no globals."""
