"""How a model is cut into stages, and when each stage works on which micro-batch."""
