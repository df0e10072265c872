"""Lab 14, which is planned: the rules that a cluster obeys, by which its exercises will be judged."""
