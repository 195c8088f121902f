"""Tell whether torch.compile pays off for a model, on this machine, for a planned run."""

__version__ = "0.1.0"
