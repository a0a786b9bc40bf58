"""Facts about a workflow before it runs: proofs and findings over its state machine."""
