from small_functions import twice

import tirlite as tl

tl.compile(twice, strategy="per_shape").plan
