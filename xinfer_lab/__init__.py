"""xinfer_lab: run a language model that is larger than the GPU's memory, and learn how."""
