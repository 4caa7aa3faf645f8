"""The phases of a job, one file each: the phase that follows, given what the job's pods do (M5, V2)."""
