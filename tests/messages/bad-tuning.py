import numpy as np
from small_functions import product

import tirlite as tl

tl.autotune(product, np.ones(3, np.float32), rounds=0)
