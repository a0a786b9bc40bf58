"""More expressions: models made of data and data made of models, computations with an `Any`, orders
by keys that may fail, and durations of several units.
"""

from __future__ import annotations

from typing import Final

PATTERNS: Final = {
    "int": [
        "Line.model_validate({'sku': <str>, 'qty': <int>}).qty",
        "len(order.model_dump(mode='json'))",
        "<Line>.model_dump()['qty']",
        "asdict(Tally(<int>))['count']",
        "int(bag['k'] + <int.>)",
        "int(<int.> - thing)",
        "int(bag['k'] * bag.get(<str.>, 2))",
        "int(sum(bag.values()))",
        "int(abs(-bag['k']) * 3)",
        "int(thing)",
        "int(bag['k'] / 2 // 1)",
        "int(round(bag['k'] / 3, 2) * 100)",
        "int(bag['k'] % 5)",
        "len(thing + thing)",
        "len(<list[str]> + thing)",
        "len(thing[:1])",
        "len(thing[-2:])",
        "int(max(bag['k'], key=lambda x: x, default=0)) if thing == 'z' else 3",
        "max([{'q': <int>}, {'q': 2}], key=lambda row: row['q'])['q']",
        "sorted([{'q': <int>}, {'q': <int>}], key=lambda row: row[<str.> or 'q'])[0]['q']",
        "len(sorted([{'q': thing}, {'q': <int.>}], key=lambda row: row['q']))",
        "d[max(d, key=d.get, default='a')]",
        "int(timedelta(hours=1, minutes=<int>, seconds=30).total_seconds())",
        "int(timedelta(milliseconds=<int.> * 1000).total_seconds())",
    ],
    "str": [
        "Line.model_validate(bag).sku",
        "Line(**{'sku': <str>}).sku",
        'Line.model_validate_json(\'{"sku": "j"}\').sku',
        "TypeAdapter(list[Line]).validate_python([{'sku': <str>}])[0].sku",
        "<Line>.model_dump_json()",
        "(<str> + thing)",
        "(bag['a'] + <str>)",
        "','.join(bag.get('list', [<str>, 'b']))",
        "max(d, key=d.get)",
        "min(d.items(), key=itemgetter(1))[0]",
        "sorted(<list[Line]>, key=attrgetter('qty'))[0].sku",
        "str(<Line>.model_dump())",
        "str(order.model_dump(mode='json')['placed'])",
        "order.model_dump(mode='json')['kind']",
    ],
    "bool": [
        "('coupon' in order.model_dump())",
        "(order.model_dump(mode='json')['level'] == 1)",
        "(bag['k'] < bag['a'])",
        "(bag['k'] >= bag['k'])",
        "(<str> in thing)",
        "(<str.> not in bag['a'])",
    ],
}
