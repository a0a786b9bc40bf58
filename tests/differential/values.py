"""More expressions: models made of data and data made of models."""

from __future__ import annotations

from typing import Final

PATTERNS: Final = {
    "int": [
        "Line.model_validate({'sku': <str>, 'qty': <int>}).qty",
        "len(order.model_dump(mode='json'))",
        "<Line>.model_dump()['qty']",
        "asdict(Tally(<int>))['count']",
    ],
    "str": [
        "Line.model_validate(bag).sku",
        "Line(**{'sku': <str>}).sku",
        'Line.model_validate_json(\'{"sku": "j"}\').sku',
        "TypeAdapter(list[Line]).validate_python([{'sku': <str>}])[0].sku",
        "<Line>.model_dump_json()",
        "str(<Line>.model_dump())",
        "str(order.model_dump(mode='json')['placed'])",
        "order.model_dump(mode='json')['kind']",
    ],
    "bool": [
        "('coupon' in order.model_dump())",
        "(<Line>.model_dump() == {'sku': 'a', 'qty': <int>, 'tags': []})",
        "(order.model_dump(mode='json')['level'] == 1)",
    ],
}
