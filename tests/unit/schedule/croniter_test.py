#!/usr/bin/python3
"""Ticks against croniter, and time zones against Python's zoneinfo, at random.

  croniter_test.py ANSWER    ANSWER: the program made from answer.cpp

LICTOR_SEED=n has other questions asked. Exit code 77: croniter is missing, so nothing was compared.

Only expressions that both define alike are made. Where croniter (1.3.5, Debian 12) differs:
- With six fields, its seconds come last and ours first.
- It takes each day field but "*" for restricted, ours each that does not begin with "*" (Vixie's
  rule). So "*/2" in one day field comes with "*" in the other.
- It takes a day field that lists all days for "*"; ours takes "1-31" for restricted. So a
  restricted day field lists less than all days where the other is restricted, too.
- It has "5#2" and "L5" in the day of week apply to the day of month as well, where both should
  match either way, and does not take them beside plain days. So they come with "*" and alone.
- From a day that a short month lacks it goes on by as many days, and past days that the next month
  has: "1,31" after 20 February skips 1 March. And it finds nothing for "30 2 1" (30 February, or a
  Monday). So a day over 28 stands alone.
- With six fields it does not know 7 for Sunday.
- Around clock changes it loses or moves ticks, so zones are compared between them.
"""
import datetime
import multiprocessing
import os
import random
import subprocess
import sys

try:
    import croniter
    import zoneinfo
except ImportError as error:
    print(f"skipped: {error} (Debian's package python3-croniter, for /usr/bin/python3)")
    sys.exit(77)

UTC_QUESTIONS = 40_000
ZONE_QUESTIONS = 3_000
OFFSETS_A_ZONE = 40
ZONES = ["Europe/Rome", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo",
         "Asia/Kolkata", "Africa/Casablanca", "Pacific/Apia", "America/St_Johns", "Europe/London",
         "Asia/Tehran", "Asia/Kathmandu", "Pacific/Chatham"]
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS = "sun mon tue wed thu fri sat".split()


class Expression:
    """Five or six fields of random form."""

    def __init__(self, chance):
        self.chance = chance
        self.second = self.field(0, 59) if chance.random() < 0.15 else None
        self.minute = self.field(0, 59)
        self.hour = self.field(0, 23)
        self.month = self.field(1, 12, MONTHS)
        self.day = self.weekday = "*"
        form = chance.randrange(8)
        if form == 0:  # both are restricted
            self.day = self.days()
            self.weekday = self.list_of(
                0, 7, WEEKDAYS, may=lambda values: len({day % 7 for day in values}) < 7 and
                self.takes_weekdays(values))
        elif form == 1:
            self.day = str(chance.randint(29, 31)) if chance.random() < 0.2 else self.days()
        elif form == 2:
            self.weekday = self.list_of(0, 7, WEEKDAYS, may=self.takes_weekdays)
        elif form == 3:
            steps = [step for step in range(2, 28) if 30 % step > 2]  # up to the 28th
            self.day = f"*/{chance.choice(steps)}"
        elif form == 4:
            self.weekday = f"*/{chance.randint(2, 7)}"
        elif form == 5:
            self.weekday = ",".join(f"{chance.randint(0, 6)}#{chance.randint(1, 5)}"
                                    for _ in range(chance.randint(1, 2)))
        elif form == 6:
            self.weekday = f"L{chance.randint(0, 6)}"

    def name(self, value, least, names):
        if names and self.chance.random() < 0.3 and value - least < len(names):
            return self.chance.choice([str.lower, str.upper, str.title])(names[value - least])
        return str(value)

    def element(self, least, most, names):
        """Its text and its values."""
        low, high = sorted(self.chance.randint(least, most) for _ in range(2))
        step = self.chance.randint(1, 7 if most == 7 else most - least + 1)
        low_text = self.name(low, least, names)
        high_text = self.name(high, least, names)
        form = self.chance.randrange(5)
        if form == 0:
            return f"{low_text}-{high_text}", range(low, high + 1)
        if form == 1:
            return f"{low_text}-{high_text}/{step}", range(low, high + 1, step)
        if form == 2:
            return f"{low_text}/{step}", range(low, most + 1, step)
        return low_text, [low]

    def list_of(self, least, most, names=None, may=lambda values: True):
        while True:
            elements = [self.element(least, most, names)
                        for _ in range(self.chance.choice([1, 1, 2, 3]))]
            if may({value for _, values in elements for value in values}):
                return ",".join(text for text, _ in elements)

    def field(self, least, most, names=None):
        form = self.chance.random()
        if form < 0.35:
            return "*"
        if form < 0.5:
            return f"*/{self.chance.randint(1, most - least + 1)}"
        return self.list_of(least, most, names)

    def takes_weekdays(self, values):
        return not self.second or 7 not in values

    def days(self):
        days = self.list_of(1, 31, may=lambda values: max(values) <= 28)
        return days + ",L" if self.chance.random() < 0.15 else days

    def fields(self):
        return [self.minute, self.hour, self.day, self.month, self.weekday]

    def ours(self):
        return " ".join(([self.second] if self.second else []) + self.fields())

    def theirs(self):
        return " ".join(self.fields() + ([self.second] if self.second else []))


def instant(chance, first_year, last_year):
    first, last = (datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp()
                   for year in (first_year, last_year))
    return chance.randrange(int(first), int(last))


def croniters_next(question):
    zone, after, text = question
    start = datetime.datetime.fromtimestamp(after, zoneinfo.ZoneInfo(zone))
    try:
        found = croniter.croniter(text, start).get_next(float)
    except croniter.CroniterBadDateError:
        return "none in 50 years"
    except croniter.CroniterError as error:
        return f"error: {error}"
    return str(int(found))


def changes_between(zone, begin, end):
    """Whether the clock is changed from a day before `begin` to a day after `end`."""
    zone = zoneinfo.ZoneInfo(zone)
    day = 86_400
    offsets = {datetime.datetime.fromtimestamp(at, zone).utcoffset()
               for at in range(begin - day, end + 2 * day, day)}
    return len(offsets) > 1


def main():
    seed = int(os.environ.get("LICTOR_SEED", "31"))
    chance = random.Random(seed)
    questions, theirs = [], []
    for number in range(UTC_QUESTIONS + ZONE_QUESTIONS):
        zone = "UTC" if number < UTC_QUESTIONS else chance.choice(ZONES)
        expression = Expression(chance)
        after = instant(chance, 1980, 2090)
        questions.append(f"next\t{zone}\t{after}\t{expression.ours()}")
        theirs.append((zone, after, expression.theirs()))
    # "localtime" is refused: hosts may differ in theirs.
    zones = sorted(zoneinfo.available_timezones() - {"localtime"})
    offsets = []
    for zone in zones:
        for _ in range(OFFSETS_A_ZONE):
            at = instant(chance, 1840, 2500)
            questions.append(f"offset\t{zone}\t{at}")
            offset = datetime.datetime.fromtimestamp(at, zoneinfo.ZoneInfo(zone)).utcoffset()
            offsets.append(str(int(offset.total_seconds())))

    answers = subprocess.run([sys.argv[1]], input="\n".join(questions) + "\n", text=True,
                             stdout=subprocess.PIPE, check=True, timeout=300).stdout.splitlines()
    with multiprocessing.Pool() as pool:
        expected = pool.map(croniters_next, theirs, chunksize=500)

    compared = left_out = 0
    differences = []
    for question, (zone, after, _), ours, croniters in zip(questions, theirs, answers, expected):
        if "never fires" in ours:
            ours = "none in 50 years"
        elif zone != "UTC" and ours.isdigit() and (
                int(ours) - after > 120 * 86_400 or changes_between(zone, after, int(ours))):
            left_out += 1
            continue
        compared += 1
        if ours != croniters:
            differences.append(f"{question}: got {ours}, croniter has {croniters}")
    for question, ours, offset in zip(questions[len(theirs):], answers[len(theirs):], offsets):
        if ours != offset:
            differences.append(f"{question}: got {ours}, zoneinfo has {offset}")

    print(f"seed {seed}: {compared} ticks compared with croniter, {left_out} near clock changes "
          f"left out, {len(offsets)} offsets of {len(zones)} zones compared with zoneinfo")
    for difference in differences[:20]:
        print(difference)
    if differences:
        print(f"{len(differences)} differences; LICTOR_SEED={seed} has the same questions asked")
    enough = len(answers) == len(questions) and compared >= UTC_QUESTIONS and len(zones) > 100
    if not enough:
        print(f"too little was compared: {len(answers)} answers to {len(questions)} questions")
    sys.exit(1 if differences or not enough else 0)


if __name__ == "__main__":
    main()
