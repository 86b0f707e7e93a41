"""
note: tries from the largest down, keyword arguments
"""


def decide_residency(sizes, budget):
    for slots in range(sizes["layers"], 0, -1):
        if sizes["always"] + slots * sizes["layer"] <= budget:
            if slots == sizes["layers"]:
                return "resident"
            if slots >= 2:
                return slots
    raise DoesNotFit(needed=sizes["always"] + min(2, sizes["layers"]) * sizes["layer"], available=budget)
