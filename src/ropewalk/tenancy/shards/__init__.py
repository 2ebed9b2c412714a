"""TopoOpt's shared cluster: servers behind patch panels, a shard of them and a topology of its own for every job."""
