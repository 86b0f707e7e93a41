"""
wrong: no layer stays, as in Lab 3
check: beat_40, beat_70, beat_90, gate
phrase: Layers stream that could stay
"""


def plan(needs):
    layers, layer = needs["layers"], needs["forms"]["plain"]["layer_bytes"]
    host = "pinned" if layers * layer <= needs["pinned"] else "staged"
    return {"form": "plain", "streamed": list(range(layers)), "slots": 2, "host": host}
