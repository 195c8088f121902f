"""As much of torchvision as a source uses."""

from torchvision import models as models
