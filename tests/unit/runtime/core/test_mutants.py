"""The mutants of tests/mutants can still be tried: `make mutants` builds them all."""

import pytest

from tests.mutants.mutant import INVARIANTS, all_mutants

MUTANTS = all_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies_to_the_sources_of_today(mutant):
    assert mutant.says
    for file, text in mutant.sources().items():
        assert file.startswith("src/")
        assert text


def test_every_invariant_of_the_core_has_a_mutant():
    assert {mutant.invariant for mutant in MUTANTS} == set(INVARIANTS)
