"""Made-up tables that are oddly written: delimiters, marks, encodings, quotes and names of columns."""

from __future__ import annotations

from tests.cases.made_up import REQUIRED, Case, listed, one_of, ranged, whole

ODD_FILES = [
    Case(
        "semicolons and decimal commas",
        "site;weight;price",
        ["Upper;2,35;1.499,90", "Lower;0,80;12,00", "Upper;3,10;250,75"],
        [
            listed("site", ["Upper", "Lower", "Middle"], constraints=REQUIRED),
            ranged("weight", "number", 0, 5, bins=10, decimals=2, decimalChar=",", required=True),
            ranged("price", "number", 0, 9000, bins=9, decimals=2, decimalChar=",", groupChar=".", required=True),
        ],
        {"site": one_of("Upper", "Lower", "Middle"), "weight": r"[0-5],\d\d", "price": r"[\d.]{1,5},\d\d"},
        options=("--delimiter", ";"),
        seen={"site": ("Upper", "Lower")},
    ),
    Case(
        "a byte order mark",
        "\ufeffvisitor,trips",
        ["first,2", "again,6"],
        [listed("visitor", ["first", "again"], constraints=REQUIRED), ranged("trips", "integer", 0, 9)],
        {"visitor": one_of("first", "again"), "trips": whole(0, 9, "")},
        seen={"visitor": ("first", "again")},
    ),
    Case(
        "another encoding, declared",
        "town,pets",
        ["Zürich,1", "Genève,0", "Bern,4"],
        [listed("town", ["Zürich", "Genève", "Bern"], constraints=REQUIRED), ranged("pets", "integer", 0, 9)],
        {"town": one_of("Zürich", "Genève", "Bern"), "pets": whole(0, 9, "")},
        options=("--encoding", "latin-1"),
        encoding="latin-1",
        seen={"town": ("Zürich", "Genève")},
    ),
    Case(
        "bytes that are not the declared encoding",
        "town,pets",
        [b"Z\xfcrich,1", b"Gen\xe8ve,0", b"Bern,4"],
        [
            listed("town", ["Zürich", "Genève", "Bern", "elsewhere"], margent={"unlisted": {"to": "elsewhere"}}),
            ranged("pets", "integer", 0, 9),
        ],
        {"town": one_of("Zürich", "Genève", "Bern", "elsewhere", ""), "pets": whole(0, 9, "")},
        seen={"town": ("elsewhere",)},
    ),
    Case(
        "commas, quotes and line ends inside cells",
        "reply,mark",
        ['"no, never",3', '"well\nmaybe",1', '"they wrote ""fine""",2'],
        [
            listed("reply", ["no, never", "well\nmaybe", 'they wrote "fine"'], constraints=REQUIRED),
            ranged("mark", "integer", 0, 5),
        ],
        {"reply": one_of("no, never", "well\nmaybe", 'they wrote "fine"'), "mark": whole(0, 5, "")},
        newline="\r\n",
        seen={"reply": ("well\nmaybe", 'they wrote "fine"')},
    ),
    Case(
        "odd column names",
        'Civil state,<i>wage</i>,sum,from,rôle Ü,"x,y","p""q",v.1,v_1,__class__, gap',
        ["wed,12,1,L,1,2,3,4,5,6,7", "free,31,2,R,7,6,5,4,3,2,1"],
        [
            listed("Civil state", ["wed", "free"]),
            listed("from", ["L", "R"]),
            *(
                ranged(name, "integer", 0, 40)
                for name in ("<i>wage</i>", "sum", "rôle Ü", "x,y", 'p"q', "v.1", "v_1", "__class__", " gap")
            ),
        ],
        {"Civil state": one_of("wed", "free", ""), "<i>wage</i>": whole(0, 40, ""), " gap": whole(0, 40, "")},
        seen={"Civil state": ("wed", "free")},
    ),
]
