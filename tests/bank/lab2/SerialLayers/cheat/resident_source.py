"""
wrong: keeps all layers resident
check: serial
phrase: not yet
"""


class SerialLayers(OneSlot):
    def begin(self, steps):
        from xinfer_lab.qwen2.config import Qwen2Config
        from xinfer_lab.residency.resident import ResidentLayers

        raise_if = getattr(self.slot, "layout", None)
        self.resident = ResidentLayers(self.device, raise_if, torch.float32, self.layers, None)

    def ensure(self, layer):
        return self.resident.ensure(layer)

    def release(self, layer):
        self.resident.release(layer)
