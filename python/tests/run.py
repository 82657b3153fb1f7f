print("1..1"); import rws; print("ok 1 -", rws.__version__)
