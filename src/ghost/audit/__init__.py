"""The audit: from a number to the runs behind it, on the command line (`lookup`) and as a page (`page`)."""
