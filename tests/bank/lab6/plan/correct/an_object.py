"""
note: an object that can be called, without fit and spread
"""


class Planner:
    def __call__(self, needs):
        found = [self._one(needs, form, host) for form in needs["forms"] for host in ("staged", "pinned")]
        return min((one for one in found if one), key=lambda one: one[0])[1]

    def _one(self, needs, form, host):
        figures = needs["forms"][form]
        layer, layers = figures["layer_bytes"], needs["layers"]
        room = (needs["budget"] - figures["always"]) // layer
        if room < 2 and room < layers:
            return None
        count = 0 if room >= layers else layers - room + 2
        if (needs["ring"] if host == "staged" and count else count) * layer > needs["pinned"]:
            return None
        rate = min(needs["link"], needs["memcpy"]) if host == "staged" else needs["link"]
        time = max(needs["t_pass"] + layers * figures["t_decode"], count * layer / rate)
        places = [(2 * place + 1) * layers // (2 * count) for place in range(count)]
        return time, {"host": host, "slots": 2 if count else 0, "streamed": places, "form": form}


plan = Planner()
