import numpy as np
from small_functions import scale

x = np.ones((2, 3), np.float32)
scale(x, 2, x, x)
