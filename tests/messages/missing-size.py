from small_functions import twice

twice.plan_at(n=4)
