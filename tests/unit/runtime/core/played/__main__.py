from played import GOLDENS

for golden in GOLDENS:
    golden.write()
