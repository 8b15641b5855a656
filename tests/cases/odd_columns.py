"""Made-up tables of odd columns: codes, words, zones, bounds, constants, and what may not be shown."""

from __future__ import annotations

from tests.cases.made_up import REQUIRED, Case, instant, listed, one_of, ranged, role, whole

ODD_COLUMNS = [
    Case(
        "leading zeros",
        "post,serial,born",
        ["00210,000031,07031994", "90001,410000,21121960", "00210,000031,01011901"],
        [
            listed("post", ["00210", "90001", "04100"], constraints=REQUIRED),
            listed("serial", ["000031", "410000"], constraints=REQUIRED),
            ranged("born", "date", "1900-01-01", "2019-12-31", format="%d%m%Y", bins="year", required=True),
        ],
        {"post": r"\d{5}", "serial": r"\d{6}", "born": r"[0-3]\d[01]\d(19|20)\d\d"},
        seen={"post": ("00210",), "serial": ("000031",)},
    ),
    Case(
        "whole numbers beside missing cells",
        "home,rooms",
        ["1,3", "2,", "3,1", "4,"],
        [role("home", "drop"), ranged("rooms", "integer", 0, 8)],
        {"rooms": whole(0, 8, "")},
        seen={"rooms": ("3", "")},
    ),
    Case(
        "whole numbers above 2^53",
        "block,tick",
        ["9007199254740997,1600000000987654321", "9007199254740999,1600000000000000001"],
        [
            listed("block", [9007199254740997, 9007199254740999], constraints=REQUIRED),
            ranged("tick", "integer", 1600000000000000000, 1600000001000000000, bins=4, required=True),
        ],
        {
            "block": one_of("9007199254740997", "9007199254740999"),
            "tick": whole(1600000000000000000, 1600000001000000000),
        },
        seen={"block": ("9007199254740997", "9007199254740999")},
    ),
    Case(
        "words for true and false",
        "member,car,alive,agreed",
        ["TRUE,1,yes,Y", "false,0,yes,N", "True,1,no,"],
        [
            {"name": "member", "type": "boolean", "constraints": REQUIRED},
            {"name": "car", "type": "boolean", "trueValues": ["1"], "falseValues": ["0"], "constraints": REQUIRED},
            {"name": "alive", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"], "constraints": REQUIRED},
            {"name": "agreed", "type": "boolean", "trueValues": ["Y"], "falseValues": ["N"]},
        ],
        {
            "member": one_of("true", "false"),
            "car": one_of("1", "0"),
            "alive": one_of("yes", "no"),
            "agreed": one_of("Y", "N", ""),
        },
        seen={"member": ("true", "false"), "agreed": ("Y", "N", "")},
    ),
    Case(
        "offsets and clock changes",
        "begin,end",
        [
            "2022-03-27T01:10:00+01:00,2022-03-27T03:40:00+02:00",
            "2022-10-30T02:20:00+02:00,2022-10-30T02:20:00+01:00",
            "2022-07-01T10:00:00Z,2022-07-01T05:30:00-06:00",
        ],
        [
            ranged(name, "datetime", "2022-01-01T00:00:00Z", "2022-12-31T23:59:00Z", bins="month", timeZone=zone)
            for name, zone in (("begin", "Europe/Vienna"), ("end", "UTC"))
        ],
        {
            "begin": instant("2022-01-01T00:00:00+00:00", "2022-12-31T23:59:59+00:00"),
            "end": lambda cell: (
                cell == "" or ("2022-01-01" <= cell <= "2022-12-31T23:59:59Z" and cell[-1:] == "Z") or "+00:00" in cell
            ),
        },
    ),
    Case(
        "ordered categories, one of which never occurs",
        "view,band",
        ["good,B", "fair,A", "very good,C"],
        [
            listed("view", ["very bad", "bad", "fair", "good", "very good"], categoriesOrdered=True),
            listed("band", ["A", "B", "C", "D"]),
        ],
        {"view": one_of("very bad", "bad", "fair", "good", "very good", ""), "band": one_of("A", "B", "C", "D", "")},
        seen={"view": ("fair", "good", "very good")},
    ),
    Case(
        "numbers and words in one column",
        "door,level",
        ["3,10", "3B,2.5", "Cellar,<1", "4,traces"],
        [
            listed("door", ["3", "3B", "4", "Cellar"]),
            ranged("level", "number", 0, 40, bins=8, decimals=1, special=["<1", "traces"]),
        ],
        {"door": one_of("3", "3B", "4", "Cellar", ""), "level": r"(<1|traces|\d\d?\.\d|)"},
        seen={"door": ("3B", "Cellar"), "level": ("<1", "traces")},
    ),
    Case(
        "sentinel codes",
        "wage,children,moved",
        ["31000,1,-6", "-8,0,2011", "777777,-6,-6", "52500,88,"],
        [
            ranged(
                "wage",
                "integer",
                0,
                90000,
                bins={"width": 9000},
                special={"-8": "refused", "-6": "not asked", "777777": "more"},
            ),
            ranged("children", "integer", 0, 9, special=["-6", "88"]),
            ranged("moved", "integer", 1990, 2020, special=["-6"]),
        ],
        {
            "wage": whole(0, 90000, "-8", "-6", "777777", ""),
            "children": whole(0, 9, "-6", "88", ""),
            "moved": whole(1990, 2020, "-6", ""),
        },
        seen={"wage": ("-8", "777777"), "children": ("-6", "88"), "moved": ("-6",)},
    ),
    Case(
        "negative and narrow bounds",
        "frost,saldo,step",
        ["-30,-4999.01,7", "12,250.50,7", "-2,0.00,9"],
        [
            ranged("frost", "integer", -35, 40, required=True),
            ranged("saldo", "number", -5000, 5000, bins=20, decimals=2, required=True),
            ranged("step", "integer", 7, 7, required=True),
        ],
        {"frost": whole(-35, 40), "saldo": r"-?\d{1,4}\.\d\d", "step": one_of("7")},
    ),
    Case(
        "a column of nothing but missing cells",
        "grade,remark,day",
        ["3,,", "1,,", "4,,"],
        [
            ranged("grade", "integer", 0, 4, required=True),
            ranged("remark", "integer", 0, 7),
            ranged("day", "date", "2021-01-01", "2021-12-31", bins="month"),
        ],
        {"grade": whole(0, 4), "remark": whole(0, 7, ""), "day": r"(2021-\d\d-\d\d|)"},
        seen={"grade": ("1", "3", "4"), "remark": ("",), "day": ("",)},
    ),
    Case(
        "constant columns",
        "clinic,dose,size",
        ["K7,ml,1", "K7,ml,2", "K7,ml,2"],
        [
            listed("clinic", ["K7"], constraints=REQUIRED),
            listed("dose", ["ml", "l"], constraints=REQUIRED),
            ranged("size", "integer", 1, 2, required=True),
        ],
        {"clinic": one_of("K7"), "dose": one_of("ml", "l"), "size": whole(1, 2)},
        seen={"dose": ("ml",)},
    ),
    Case(
        "values outside the schema",
        "unit,years",
        ["Eye,30", "Ear,52", "Ear ,31", "eye,999", ",-5", "Dentistry-77,40"],
        [listed("unit", ["Eye", "Ear", "Skin"]), ranged("years", "integer", 0, 110)],
        {"unit": one_of("Eye", "Ear", "Skin", ""), "years": whole(0, 110, "")},
        seen={"unit": ("Eye", "Ear", "")},
        secrets=("Dentistry-77",),
    ),
    Case(
        "identifiers, contact data and free text",
        "key,mail,remark,years",
        ['K-71,zoe@example.net,"allergic, see file",44', 'K-72,max@example.net,"none",38'],
        [role("key", "identifier"), role("mail", "drop"), role("remark", "drop"), ranged("years", "integer", 0, 110)],
        {"key": r"\d+", "years": whole(0, 110, "")},
        secrets=("K-71", "zoe@", "max@example", "allergic"),
    ),
    Case(
        "identifiers and nothing else",
        "key,mail",
        ["K-71,zoe@example.net", "K-72,max@example.net"],
        [role("key", "identifier"), role("mail", "drop")],
        {"key": r"\d+"},
        secrets=("K-71", "zoe@"),
    ),
    Case(
        "categories only",
        "side,tier",
        ["L,top", "R,low", "L,mid"],
        [listed("side", ["L", "R"], constraints=REQUIRED), listed("tier", ["low", "mid", "top"], constraints=REQUIRED)],
        {"side": one_of("L", "R"), "tier": one_of("low", "mid", "top")},
        seen={"side": ("L", "R"), "tier": ("low", "mid", "top")},
    ),
]
