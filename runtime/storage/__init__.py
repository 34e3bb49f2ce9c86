"""L3: objects by key. A backend keeps what it is given; whether the bytes are right is checked
above it."""
