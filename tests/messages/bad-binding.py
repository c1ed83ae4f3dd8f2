from io import StringIO

from tirlite.plan import read_csv

read_csv(StringIO("id,lower,upper,size_expr\na,0,2,4*N\n"), facts="N%8==0", bind={"N": 4})
