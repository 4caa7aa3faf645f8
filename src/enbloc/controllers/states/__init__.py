"""The phases of a job, one file each: what a job in that phase turns into, given what its pods do (M5, V2)."""
