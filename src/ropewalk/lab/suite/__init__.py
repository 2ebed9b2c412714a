"""The testbeds of papers as a suite: each is a table of runs on labs, what is compared, and what was published."""
