"""Days with incidents, and what could be known of them, for lab 13."""
