"""Many runs of one command: started one by one or as a Slurm array, found again, tabulated."""
