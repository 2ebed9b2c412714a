"""vClos: every job that crosses leafs gets l leafs × s spines with all links between them to itself."""
