"""Units, money and months as English says them."""

from __future__ import annotations

UNITS = {
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "m/s": ("meter per second", "meters per second"),
    "km²": ("square kilometer", "square kilometers"),
    "m²": ("square meter", "square meters"),
    "㎡": ("square meter", "square meters"),
    "m³": ("cubic meter", "cubic meters"),
    "sq ft": ("square foot", "square feet"),
    "km": ("kilometer", "kilometers"),
    "m": ("meter", "meters"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "nm": ("nanometer", "nanometers"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "kg": ("kilogram", "kilograms"),
    "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"),
    "mcg": ("microgram", "micrograms"),
    "μg": ("microgram", "micrograms"),
    "μL": ("microliter", "microliters"),
    "μm": ("micrometer", "micrometers"),
    "dL": ("deciliter", "deciliters"),
    "mmol": ("millimole", "millimoles"),
    "mmHg": ("millimeter of mercury", "millimeters of mercury"),
    "kPa": ("kilopascal", "kilopascals"),
    "MPa": ("megapascal", "megapascals"),
    "psi": ("pound per square inch", "pounds per square inch"),
    "mA": ("milliamp", "milliamps"),
    "kV": ("kilovolt", "kilovolts"),
    "tbsp": ("tablespoon", "tablespoons"),
    "tsp": ("teaspoon", "teaspoons"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "L": ("liter", "liters"),
    "l": ("liter", "liters"),
    "mL": ("milliliter", "milliliters"),
    "ml": ("milliliter", "milliliters"),
    "kcal": ("kilocalorie", "kilocalories"),
    "kWh": ("kilowatt hour", "kilowatt hours"),
    "kW": ("kilowatt", "kilowatts"),
    "W": ("watt", "watts"),
    "V": ("volt", "volts"),
    "mAh": ("milliamp hour", "milliamp hours"),
    "GHz": ("gigahertz", "gigahertz"),
    "MHz": ("megahertz", "megahertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "Hz": ("hertz", "hertz"),
    "TB": ("terabyte", "terabytes"),
    "GB": ("gigabyte", "gigabytes"),
    "MB": ("megabyte", "megabytes"),
    "KB": ("kilobyte", "kilobytes"),
    "kB": ("kilobyte", "kilobytes"),
    "GiB": ("gibibyte", "gibibytes"),
    "MiB": ("mebibyte", "mebibytes"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "dB": ("decibel", "decibels"),
    "ms": ("millisecond", "milliseconds"),
    "min": ("minute", "minutes"),
    "sec": ("second", "seconds"),
    "h": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "px": ("pixel", "pixels"),
    "%": ("percent", "percent"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "℃": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
}
"""By the sign after the number: said after 1, and after anything else."""

PER = {
    **{sign: names[0] for sign, names in UNITS.items() if sign[0].isalpha() and "/" not in sign},
    **{"h": "hour", "s": "second", "d": "day", "day": "day", "wk": "week", "mo": "month", "yr": "year"},
    **{
        word: word for word in ("second", "minute", "hour", "week", "month", "year", "person", "unit", "dose")
    },
    **{word: word for word in ("user", "item", "piece", "night")},
}
"""What may stand after the slash of ``0.5mg/kg`` and ``$20/month``, in one."""

MONEY = {
    "US$": ("dollar", "dollars", "cent", "cents"),
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "", ""),
    "₩": ("won", "won", "", ""),
    "¢": ("cent", "cents", "", ""),
    "USD": ("dollar", "dollars", "cent", "cents"),
    "EUR": ("euro", "euros", "cent", "cents"),
    "GBP": ("pound", "pounds", "penny", "pence"),
    "JPY": ("yen", "yen", "", ""),
    "KRW": ("won", "won", "", ""),
}
"""By the sign or code on either side of the amount."""

POWERS = {
    "k": "thousand",
    "K": "thousand",
    "M": "million",
    "m": "million",
    "B": "billion",
    "bn": "billion",
    "T": "trillion",
}
"""Letters after an amount of money."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)

SIGNS = {
    "&": " and ",
    "@": " at ",
    "±": " plus or minus ",
    "√": " the square root of ",
    "§": " section ",
    "mmHg": " millimeters of mercury",
    "≥": " at least ",
    "≤": " at most ",
    "≠": " is not ",
    "≈": " about ",
    "→": ", ",
    "·": ", ",
    "•": ", ",
    "÷": " divided by ",
    "×": " times ",
    "²": " squared",
    "³": " cubed",
    "½": " one half",
    "⅓": " one third",
    "⅔": " two thirds",
    "¼": " one quarter",
    "¾": " three quarters",
    "№": "number ",
    "∞": " infinity ",
    "π": "pi",
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "μ": "mu",
    "Ω": "ohm",
}
"""Signs with a name of their own; all other signs are left out."""

WORDS_IN_CAPITALS = frozenset(
    (
        *("A", "I", "OK", "NO", "YES", "AND", "THE", "NOT", "IT", "IS", "ON", "OFF", "OR", "IN"),
        *("AT", "TO", "OF", "BY", "UP", "DO", "GO", "IF", "MY", "WE", "YOU", "ALL", "NEW", "NOW"),
        *("ONE", "TWO", "BUT", "FOR", "CAN", "GET", "SET", "RUN", "USE", "SEE", "OUT", "TOP", "END", "ADD"),
        *("ANY", "ARE", "WAS", "HAS", "HAD", "HIM", "HER", "HIS", "SHE", "HE", "WHO", "WHY", "HOW", "RAM"),
        *("LAN", "PIN", "SIM", "ROM", "NASA", "NATO", "COVID", "JPEG", "ASAP"),
    )
)
"""Short words of capitals that are said, not spelled."""
