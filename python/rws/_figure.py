def chart(*a, **k): raise NotImplementedError
grid = hinton = tree = chart
