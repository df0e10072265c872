"""The course: what a notebook says and asks, its boards, and the grader."""
