import numpy as np
from small_functions import scale

scale(np.ones((2, 3), np.float32), 1e39)
