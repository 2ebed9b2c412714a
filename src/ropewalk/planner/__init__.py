"""What should I do? The best strategy for a model on a cluster, over everything that can be chosen, with a bound."""
