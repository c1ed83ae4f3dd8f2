from io import StringIO

from tirlite.plan import read_csv

read_csv(StringIO("id,lower,upper,size,end\na,0,3,4,9\n"))
