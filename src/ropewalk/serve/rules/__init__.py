"""Rules of running jobs on the devices of the network: made, put in place, compared and repaired."""
