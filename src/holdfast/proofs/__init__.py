"""What can be said of a workflow before it runs: proofs and findings over its state machine."""
