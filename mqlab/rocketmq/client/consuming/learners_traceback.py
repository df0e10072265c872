"""What a learner is shown of an exception that left a listener, a callback or started work: his own lines."""

from __future__ import annotations

import traceback


def learners_traceback(error: BaseException) -> str:
    """The traceback cut to the learner's lines: frames of mqlab itself are left out."""
    frames = [
        summary
        for (frame, _), summary in zip(
            traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True
        )
        if not str(frame.f_globals.get("__name__", "")).startswith("mqlab.")
    ]
    lines = ["Traceback (most recent call last):\n"] if frames else []
    return "".join([*lines, *traceback.format_list(frames), *traceback.format_exception_only(error)])
