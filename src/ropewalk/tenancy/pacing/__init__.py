"""How fast jobs iterate that use links together: one file for each way in which they may meet."""
