"""Pieces of screens. They show what they are given and ask no questions."""
