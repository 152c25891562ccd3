"""What happened, so that it can be proven afterwards.

Records are sealed in batches, exported, and verified without the service.
"""
