"""One screen per file. A screen names its questions and shows their answers; it asks nothing."""
