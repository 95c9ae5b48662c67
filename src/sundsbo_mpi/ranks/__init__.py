"""What the ranks of a job do together whatever the job: begin, agree, stop, fail."""
