from pathlib import Path

from tirlite.plan import read_csv

read_csv(Path(__file__).with_name("latin-1.csv"))
