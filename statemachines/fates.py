"""What the simulated outside world does to an order.

The last two digits of an order's number decide, as the card number does in a payment sandbox:
order 536407 is declined wherever and whenever it runs. Invoice numbers run on, so each fate comes
up on any ordinary trading day, and whoever writes a test picks the fate with the number.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Fate(Enum):
    """One order, one fate; most are PLAIN."""

    PLAIN = "everything works"
    DECLINED = "the bank declines the card"
    BANK_DOWN = "the bank cannot be reached at the first attempt"
    CARRIER_BUSY = "the carrier turns the first two attempts away"
    OUT_OF_STOCK = "a shelf is empty although the goods were reserved"
    EARLY = "the bank confirms before anybody waits for it"
    MINUTES = "the bank confirms after four minutes"
    HOURS = "the bank confirms after five hours"
    DAYS = "the bank confirms after two days"
    TWICE = "the bank confirms after half an hour and says it again"
    UNSETTLED = "the bank reports that the payment did not settle"
    LATE = "the bank confirms when nobody waits any more"
    SILENT = "the bank never says anything"


PENDING: Final = frozenset(
    {
        Fate.EARLY,
        Fate.MINUTES,
        Fate.HOURS,
        Fate.DAYS,
        Fate.TWICE,
        Fate.UNSETTLED,
        Fate.LATE,
        Fate.SILENT,
    }
)

_LAST_TWO_DIGITS: Final = {
    Fate.DECLINED: (7, 32, 57, 82),
    Fate.BANK_DOWN: (3, 28, 53, 78),
    Fate.CARRIER_BUSY: (17, 42, 67, 92),
    Fate.OUT_OF_STOCK: (13, 38, 63, 88),
    Fate.EARLY: (5, 30, 55, 80),
    Fate.MINUTES: (9, 34, 59, 84),
    Fate.HOURS: (11, 36, 61, 86),
    Fate.DAYS: (15, 40, 65, 90),
    Fate.TWICE: (23, 48, 73, 98),
    Fate.UNSETTLED: (20, 45, 70, 95),
    Fate.LATE: (1, 51),
    Fate.SILENT: (26, 76),
}
_FATES: Final = {digits: fate for fate, many in _LAST_TWO_DIGITS.items() for digits in many}


def fate_of(order_id: str) -> Fate:
    """The fate of an order; an id without digits is PLAIN."""
    digits = [character for character in order_id if character in "0123456789"]
    return _FATES.get(int("".join(digits[-2:])), Fate.PLAIN) if digits else Fate.PLAIN
