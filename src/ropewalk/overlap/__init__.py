"""In which order, and in which pieces, gradients are synchronised while the model computes.

`Tensors` is what is to be synchronised, `Link` what synchronises it; everything else here is a way to put the one on
the other and say when the next step may begin.
"""
