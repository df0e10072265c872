"""Lab 14: the rules that a cluster obeys; its exercises are judged by them."""
