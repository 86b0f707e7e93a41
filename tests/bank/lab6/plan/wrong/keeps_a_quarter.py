"""
wrong: a quarter of the layers stays, whatever the budget
check: beat_40, beat_70, beat_90, gate
phrase: Layers stream that could stay
"""


def plan(needs):
    layers, layer = needs["layers"], needs["forms"]["plain"]["layer_bytes"]
    count = layers - layers // 4
    host = "pinned" if count * layer <= needs["pinned"] else "staged"
    return {"form": "plain", "streamed": spread(layers, count), "slots": 2, "host": host}
