"""Lab 6: what the claims of the source material come to, as figures that were derived."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge

__all__ = ["CLAIMS", "SHARES"]


def _figures(right: Mapping[str, float], tolerance: float, why: Mapping[str, str]) -> Judge:
    """The figures ``right``, each within ``tolerance`` of its value; ``why`` says how each is come by."""

    def compare(expected: Value, got: Value, noun: str) -> Difference | None:
        if not isinstance(got, dict) or set(got) != set(right):
            return Difference("", "a dict with the keys " + ", ".join(right), shown(got), "The form is another one.")
        for name, value in right.items():
            given = got[name]
            if given is None or given is Ellipsis:
                return Difference(f"[{name!r}]", "a number", shown(given), "Not all figures are there yet.", why[name])
            if type(given) not in (int, float) or abs(given - value) > tolerance * value:
                return Difference(
                    f"[{name!r}]", "another number", shown(given), "This figure does not follow.", why[name]
                )
        return None

    return Judge(
        truth=lambda inputs: dict(right),
        passed="Every figure follows from the claim and from arithmetic.",
        noun="dict of figures",
        compare=compare,
        of_a_call=False,
    )


SHARES = _figures(
    {"faster": 6.25, "overlap_at_most": 2.0, "left_at_least": 3.125, "activity": 6.25},
    0.01,
    {
        "faster": "84% less leaves 16% of the time: 1 / 0.16 times as fast.",
        "overlap_at_most": "Copy and computing side by side take the longer of the two in place of their sum.",
        "left_at_least": "Factors multiply: what is left is the whole factor divided by overlap's share.",
        "activity": "The same computing in a shorter time: activity rises by the factor by which the time falls.",
    },
)

CLAIMS = _figures(
    {"page_us": 32.3, "tier_ratio": 31.25, "stall_hidden_ms": 67.2, "tokens_for_150_ms": 360.6},
    0.04,
    {
        "page_us": "Bytes over bytes a second, then times a million.",
        "tier_ratio": "2 TB/s over 64 GB/s.",
        "stall_hidden_ms": "Overlap hides the shorter of the two times, for each of 64 layers.",
        "tokens_for_150_ms": "FLOPs in 150 ms, over the FLOPs of a token.",
    },
)
