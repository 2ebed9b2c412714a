"""OCS-vClos: leafs and spines meet in optical switches, and every job gets circuits of its own."""
