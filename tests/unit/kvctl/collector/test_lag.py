from kvctl.collector.lag import Lag


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def after(*steps, resume=None):
    """ms of lag after steps (verb, epoch, number), one second apart."""
    clock = Clock()
    lag = Lag(resume, clock)
    for verb, *args in steps:
        getattr(lag, verb)(*args)
        clock.now += 1
    return lag.ms()


def test_an_engine_whose_every_message_is_stored_is_not_late_however_long_it_is_idle():
    said = ("said", "e", 4)
    assert after(said, ("stored", "e", 4), *[said] * 99) == 0
    assert after(*[said] * 99, resume=("e", 4)) == 0
    assert after() == after(("said", "", -1)) == 0


def test_lag_counts_from_the_oldest_message_that_is_not_stored():
    said = [("said", "e", number) for number in range(5)]
    assert after(*said) == 5000
    assert after(*said, ("stored", "e", 1)) == 4000
    assert after(*said, ("said", "e", 4), ("stored", "e", 3)) == 3000


def test_what_another_life_of_the_engine_said_does_not_count():
    assert after(("said", "e", 9), ("said", "f", 0)) == 1000
    assert after(("said", "f", 0), ("stored", "e", 9)) == 2000
    assert after(("said", "e", 9), ("said", "f", 0), ("stored", "f", 0)) == 0
    assert after(("said", "f", 0), resume=("e", 9)) == 1000
