"""JSONata that tries to occupy a worker, or is invalid. The code is JSONata's; U1001: stopped."""

from __future__ import annotations

from typing import Final

from tests.security.cases import Case

EVALUATED: Final = (
    Case("endless recursion that grows", "($f := function($n){$n + $f($n - 1)}; $f(1))", "U1001"),
    Case(
        "three maps in one another",
        "$map([1..1000], function($i){$map([1..1000], function($j){"
        "$map([1..1000], function($k){$i})})})",
        "U1001",
    ),
    Case("a range of two million", "[1..2000000]", "D2014"),
    Case("a range of the whole of time", "[-9007199254740991..9007199254740991]", "D2014"),
    Case("a range that counts a range", "[1..1000000].[1..1000000]", "U1001"),
    Case("every item of a million by itself", "[1..999999].($ * 2)", "U1001"),
    Case("a million items joined twice", "$append([1..1000000], [1..1000000])", "U1001"),
    Case(
        "five columns of a million",
        "$zip([1..1000000], [1..1000000], [1..1000000], [1..1000000], [1..1000000])",
        "U1001",
    ),
    Case("a million items shuffled", "$shuffle([1..1000000])", "U1001"),
    Case(
        "a million items sorted by a function",
        "$sort([1..1000000], function($a, $b){$a < $b})",
        "U1001",
    ),
    Case("a group of a hundred thousand", '[1..100000]{"a": $}', "U1001"),
    Case("a hundred thousand groups", "[1..100000]{$string($): $}", "U1001"),
    Case("every pair of five thousand", "($xs := [1..5000]; $xs@$x.$xs@$y.($x + $y))", "U1001"),
    Case(
        "a list searched thirty thousand times",
        "($x := [1..100000]; $map([1..30000], function($i){-1 in $x}))",
        "U1001",
    ),
    Case(
        "a list negated thirty thousand times",
        "($x := $map([1..1000], function($i){0}); $map([1..30000], function($i){$not($x)}))",
        "U1001",
    ),
    Case(
        "an object's keys ten thousand times",
        "($o := $merge($map([1..9000], function($i){{$string($i): $i}})); "
        "$map([1..9000], function($i){$keys($o)}))",
        "U1001",
    ),
    Case("a text doubled fifty times", '$reduce([1..50], function($a, $i){$a & $a}, "x")', "U1001"),
    Case(
        "a list doubled fifty times",
        "$reduce([1..50], function($a, $i){$append($a, $a)}, [1])",
        "U1001",
    ),
    Case(
        "a list of itself, written down",
        "($x := $reduce([1..60], function($a, $i){[$a, $a]}, [0]); $string($x))",
        "U1001",
    ),
    Case(
        "a list of itself, asked for its truth",
        "$reduce([1..60], function($a, $i){[$a, $a]}, [0]) ? 1 : 2",
        "U1001",
    ),
    Case(
        "a list of itself, compared",
        "($x := $reduce([1..60], function($a, $i){[$a, $a]}, [0]); $x = [$x])",
        "U1001",
    ),
    Case(
        "a list of itself, filtered by",
        "[1..3][$reduce([1..60], function($a, $i){[$a, $a]}, [0])]",
        "U1001",
    ),
    Case(
        "a list of itself, given away", "$reduce([1..60], function($a, $i){[$a, $a]}, [0])", "U1001"
    ),
    Case("a list a thousand deep", "$reduce([1..1000], function($a, $i){[[$a]]}, [1])", "U1001"),
    Case("all descendants of all descendants", "$states.input.**.**.**.**", "value"),
    Case("a text of a hundred million", '$pad("x", 100000000)', "U1001"),
    Case("a text of 1e300", '$pad("x", 1e300)', "U1001"),
    Case(
        "a text joined from two thousand",
        '$join($map([1..2000], function($i){$pad("x", 1000)}))',
        "U1001",
    ),
    Case("a text split into its characters", '$split($pad("a", 1000000, "a"), "")', "U1001"),
    Case(
        "a text a thousand times over",
        '($s := $pad("x", 1000000); [$map([1..1000], function($i){$s})])',
        "U1001",
    ),
    Case(
        "a text encoded that is too long",
        '$base64encode($pad("x", 1000000)) & $pad("x", 100000)',
        "U1001",
    ),
    Case(
        "a pattern that backtracks in alternatives",
        '$match($pad("a", 60, "a"), /(a|a)*b/)',
        "undefined",
    ),
    Case("a pattern that splits slowly", '$split($pad("a", 60, "a"), /(a|a)*c/)', "value"),
    Case("a pattern that replaces slowly", '$replace($pad("a", 60, "a"), /(a|a)*c/, "")', "value"),
    Case("a pattern used as a function, slowly", '/(a|a)*c/($pad("a", 60, "a"))', "undefined"),
    Case("a pattern that calls itself", '$contains("aaaa", /(?R)?a/)', "S0302"),
    Case("a pattern that matches nothing", '$match("abc", /x*/)', "D1004"),
    Case("a pattern that is none", '$match("abc", /(/)', "S0302"),
    Case(
        "a pattern with a count beyond counting",
        '$contains("a", /a{99999999999999999999}/)',
        "S0302",
    ),
    Case("$eval", '$eval("1")', "T1006"),
    Case("$eval by another name", '($e := $eval; $e("1"))', "T1006"),
    Case("$eval of a text that is made", '("$e" & "val")("1")', "T1006"),
    Case("an attribute of Python", "$states.__class__.__mro__", "undefined"),
    Case("a method of Python", "$states.input.a.append(1)", "undefined"),
    Case("a module of Python", '$__import__("os")', "T1006"),
    Case("an unknown function", '$system("id")', "T1006"),
    Case("a function as the result", "function($x){$x}", "undefined"),
    Case("a number as a function", "(1)(2)", "T1006"),
    Case("a division by nothing", "1 / 0", "D1001"),
    Case("a number beyond doubles", "1e308 * 10", "D1001"),
    Case("a power beyond doubles", "$power(10, 309)", "D3061"),
    Case("a root that is none", "$sqrt(-1)", "D3060"),
    Case("not a number", '$number("NaN")', "D3030"),
    Case("a hexadecimal number beyond doubles", '$number("0x" & $pad("F", 10000, "F"))', "D1000"),
    Case("a base that is none", "$formatBase(1e300, 36)", "D1000"),
    Case("a moment beyond the year 9999", "$fromMillis(1e300)", "D1001"),
    Case("a moment before the year 1", "$fromMillis(-1e300)", "D1001"),
    Case("a picture of a billion digits", '$fromMillis(0, "[f,1000000000-1000000000]")', "U1001"),
    Case("a picture of a year of a million digits", '$now("[Y,1000000]")', "U1001"),
    Case("a picture of three hundred thousand parts", '$now($pad("[Y]", 900000, "[Y]"))', "U1001"),
    Case(
        "a picture read that is too long",
        '$toMillis("2020", "[Y" & $pad("0", 100000, "0") & "]")',
        "U1001",
    ),
    Case("JSON a hundred thousand deep", '$parse($pad("[", 100000, "["))', "U1001"),
    Case("JSON with a number beyond doubles", '$parse("1e400")', "D3137"),
    Case("JSON with a number of many digits", '$parse($pad("1", 100000, "1"))', "D3137"),
    Case("JSON of Python", '$parse("[NaN]")', "D3137"),
    Case("a URL cut in a character", '$decodeUrlComponent("%C3%")', "D3140"),
    Case("half a character as a URL", '$encodeUrl("\\ud800")', "D3140"),
    Case("an error that the author throws", '$error("no")', "D3137"),
    Case("an error of a megabyte", '$error($pad("x", 1000000))', "D3137"),
    Case("an assertion", '$assert(false, "no")', "D3141"),
)

_MADE: Final = {
    "padded": "$pad('a', 999999)",
    "replaced": "$replace($pad('a', 100, 'a'), 'a', $pad('b', 9000))",
    "joined": "$join($split($pad('a', 100, 'a'), ''), $pad('b', 9000))",
}
_MADE_OFTEN: Final = {
    "by a step": "$count($map([1..12000], function($i){MADE}))",
    "to filter by": "$count($filter([1..12000], function($i){MADE}))",
    "as a last call": ("$sort($filter([1..12000], function($i){MADE}), function($l, $r){$l > $r})"),
}
#: Of 900,000 characters each; they differ at the very end, or not at all.
_TEXTS: Final = "$map([10..40], function($i){$p & $string($i)})"
_SAME: Final = "$map([10..40], function($i){$p & '1'})"
_KEYS: Final = "$map([10..40], function($i){{$p & '1': 1}})"
LONG_TEXTS: Final = (
    Case(
        "wide texts compared",
        "($p := $pad('Σ', 900000, 'Σ'); $q := $p & 'b'; $r := $p & 'c'; "
        "$count($map([1..20000], function($i){$q > $r})))",
        "U1001",
    ),
    Case(
        "a text written down a thousand times",
        "($p := $pad('a', 1000000); $count($string($map([1..1000], function($i){$p}))))",
        "U1001",
    ),
    Case(
        "a text copied four thousand times by a transform",
        "($l := $reduce([1..12], function($a, $i){$append($a, $a)}, [$pad('a', 1000000)]); "
        "$count({'a': $l, 'b': {}} ~> |b|{'c': 1}|))",
        "U1001",
    ),
    Case(
        "a text parsed into parts again and again",
        """($t := '{"a":[0' & $pad('', 990000, ',0') & ']}'; """
        "$count($map([1..90], function($i){$count($parse($t))})))",
        "U1001",
    ),
    Case(
        "a million places replaced again and again",
        "($p := $pad('a', 1000000, 'a'); "
        "$map([1..80], function($i){$length($replace($p, 'a', '', 999999))}))",
        "U1001",
    ),
    *(
        Case(f"a large {name}", f"$count({text})", "U1001")
        for name, text in (
            ("sum for each item", f"$map([1..15000], function($i){{{'+'.join(['$i'] * 300)}}})"),
            (
                "list for each item",
                f"$map([1..5000], function($i){{[{','.join(['[$i]'] * 600)}]}})",
            ),
            ("block for each item", f"$map([1..70000], function($i){{({'$i;' * 2000}$i)}})"),
            ("filter", f"[1..70000][({'$+1;' * 300}false)]"),
            ("step", f"[1..70000].({'$+1;' * 300}1)"),
            ("key to sort by", f"[1..70000]^(({'$+1;' * 300}$))"),
            ("group", f"[1..70000]{{({'$;' * 300}$string($)): 1}}"),
        )
    ),
    Case(
        "a list behind a thousand names",
        "($b := [1..1000]; $l := $map([1..1000], function($i){{'a': $b}}); "
        "$count($map([1..1900], function($i){($l.a; 1)})))",
        "U1001",
    ),
    *(
        Case(f"a long text {made} {often}", text.replace("MADE", call), "U1001")
        for made, call in _MADE.items()
        for often, text in _MADE_OFTEN.items()
    ),
    *(
        Case(
            f"long {name}",
            f"($p := $pad('a', 900000); $q := $p & 'zz'; $l := {made}; "
            f"$count($map([1..10000], function($i){{{use}}})))",
            "U1001",
        )
        for name, made, use in (
            ("texts searched", _TEXTS, "$q in $l"),
            ("texts filtered by equality", _TEXTS, "$l[$ = $q]"),
            ("texts filtered by order", _TEXTS, "$l[$ > $q]"),
            ("texts compared as lists", f"{_TEXTS}; $m := {_TEXTS}", "$l = $m"),
            ("texts sorted", _TEXTS, "$sort($l)"),
            ("texts sorted by a path", _TEXTS, "$l^($)"),
            ("texts sorted by the other engine", _TEXTS, "$shuffle($sort($l))"),
            ("texts in one another", _TEXTS, "$l[$q in $]"),
            ("texts grouped by", _SAME, "$l{$: 1}"),
            ("texts told apart", _SAME, "$distinct($l)"),
            ("keys merged", _KEYS, "$merge($l)"),
            ("keys merged by the other engine", _KEYS, "$shuffle([$merge($l)])"),
            ("keys listed", _KEYS, "$keys($l)"),
            ("keys told apart", _KEYS, "$distinct($l)"),
            ("keys compared", _KEYS, "$l[0] = $l[1]"),
        )
    ),
)

_NEARLY: Final = "$t := $pad('a', 2400, 'a'); $p := $pad('a', 624, 'a') & 'b' & $pad('a', 625, 'a')"
_BACKWARDS: Final = (
    "$m := function(){{'match': 'a', 'start': 999999, 'end': 0, 'groups': [], 'next': $m}}; "
    "$p := $pad('', 1000000, 'b'); "
)
_REFERENCES: Final = "$p := $pad('', 400000, '$9')"
_SHORT: Final = "$p := $map([1..21], function($i){$i / 3})"
_TIMES: Final = "$t := $pad('', 400, '2020-01-01'); $p := $pad('', 760, '[Y0001]-[M01]-[D01]')"
_FIELDS: Final = "$p := $merge($map([1..2400], function($i){{$string($i): $i}}))"
_ONE_HASH: Final = (
    "$p := $reduce([1..10], function($l, $i){$append($map($l, function($x){$append($x, -1)}), "
    "$map($l, function($x){$append($x, -2)}))}, [[1], [2]])"
)
_WIDE: Final = "$p := $reduce([1..15], function($a, $i){{'a': $a, 'b': $a}}, [0])"
#: 2 ** 60 values when it is written down.
_ENDLESS: Final = "$e := $reduce([1..60], function($a, $i){{'a': $a, 'b': $a}}, [0]); "
#: Texts at which a function may be slow.
REPEATED: Final = (
    *(
        Case(
            f"{name}, again and again",
            f"({made}; $count($map([1..20000], function($i){{{use}}})))",
            "U1001",
        )
        for name, made, use in (
            ("a part nearly found", _NEARLY, "$contains($t, $p)"),
            (
                "a part nearly found by the other engine",
                _NEARLY,
                "$string($contains($t, $p), true)",
            ),
            ("a text split by what is nearly there", _NEARLY, "$split($t, $p)"),
            ("a text split so by the other engine", _NEARLY, "$split($t, $p, 9)"),
            ("what is nearly there replaced", _NEARLY, "$replace($t, $p, 'c')"),
            (
                "what is nearly there replaced by the other engine",
                _NEARLY,
                "$replace($t, $p, 'c', 9)",
            ),
            ("a text before what is nearly there", _NEARLY, "$substringBefore($t, $p)"),
            ("a text after what is nearly there", _NEARLY, "$substringAfter($t, $p)"),
            (
                "a text before it, the other engine",
                _NEARLY,
                "$string($substringBefore($t, $p), true)",
            ),
            (
                "a text after it, the other engine",
                _NEARLY,
                "$string($substringAfter($t, $p), true)",
            ),
            ("a megabyte of words trimmed", "$p := $pad('a ', 999999, 'a ')", "$trim($p)"),
            (
                "a megabyte of words trimmed by the other engine",
                "$p := $pad('a ', 999999, 'a ')",
                "$string($trim($p), true)",
            ),
            ("a text encoded for a URL", "$p := $pad('', 9000, 'é')", "$encodeUrl($p)"),
            ("a megabyte decoded of a URL", "$p := $pad('', 999996, '%C3%A9')", "$decodeUrl($p)"),
            ("a number in words", "$p := 1e200", "$formatInteger($p, 'w')"),
            ("a number by a long picture", "$p := $pad('', 999, '#,0.')", "$formatInteger(5, $p)"),
            (
                "a number read by a long picture",
                "$p := $pad('', 999, '0,')",
                "$parseInteger('5', $p)",
            ),
            ("a large number by a picture", "$p := 1e300", "$formatNumber($p, '#,0.')"),
            ("a time by a long picture", "$p := $pad('', 999, '[Z]')", "$fromMillis(0, $p)"),
            ("a time read by a long picture", _TIMES, "$toMillis($t, $p)"),
            ("a name in lists", "$x := [[[1..20000]]]", "$x.(a; a; a; a; a; a; a; a; a; a)"),
            ("a replacement of references", _REFERENCES, "$replace('a', /a/, $p)"),
            ("a signature of a list", "$p := [1..3000]", "$p.(function($x)<a<n>:n>{1})($p)"),
            ("a partial call", "$p := 1", "($substring(?, 1); 1)"),
            ("short lists added up", _SHORT, f"[{','.join(['$sum($p)'] * 12)}]"),
            ("fields spread", "$p := $map([1..9000], function($i){{'a': $i}})", "$spread($p)"),
            ("a function for each field", _FIELDS, "$each($p, $string)"),
            ("a function for each item", "$p := [1..2000]", "$map($p, $string)"),
            ("lists of one hash told apart", _ONE_HASH, "$distinct($p)"),
            ("an object copied by a transform", _WIDE, "$p ~> |$|{'z': 1}|"),
        )
    ),
)
#: Large texts for an error message, and input that is read or written in quadratic time.
ENDLESS: Final = (
    *(
        Case(f"a value without end as {name}", f"({_ENDLESS}{use})", code)
        for name, use, code in (
            ("a context", "$e.$uppercase()", "T0411"),
            ("a context of a signature", "$e.(function($x)<s-:s>{$x})()", "T0411"),
            ("a key", "{$e: 1}", "U1001"),
            ("a key of a group", "$e{$: $}", "U1001"),
            ("something to sort by", "[1, 2]^($e)", "T2008"),
            ("a function", "1 ~> $e", "T2006"),
            ("a change", "{} ~> |$|[$e]|", "U1001"),
            ("names to leave out", "{} ~> |$|{}, [$e]|", "U1001"),
            (
                "a match",
                (
                    "$match('a', function(){{'match': $e, 'start': 0, 'end': 1, "
                    "'groups': [], 'next': function(){$no}}})"
                ),
                "T1010",
            ),
            (
                "a group",
                (
                    "$replace('a', function(){{'match': 'a', 'start': 0, 'end': 1, "
                    "'groups': [$e], 'next': function(){$no}}}, '$1')"
                ),
                "T1010",
            ),
        )
    ),
    Case(
        "a number of a hundred thousand letters",
        "$parseInteger($pad('', 99999, 'z'), 'a')",
        "U1001",
    ),
    Case(
        "a year of a hundred thousand letters", "$toMillis($pad('', 99999, 'z'), '[Ya]')", "U1001"
    ),
    Case("an exponent beyond doubles", "$formatNumber(0.5, $pad('', 320, '0') & 'e0')", "D1001"),
    Case(
        "a symbol of a megabyte", "$formatNumber(5, '0', {'digit': $pad('', 999999, 'x')})", "U1001"
    ),
    Case("a literal that is a pattern", "$toMillis($pad('', 40, 'a'), '(a+)+b[Y]')", "undefined"),
    *(
        Case(f"a time that is read as {name}", f"$toMillis({time}, '{picture}')", "U1001")
        for name, time, picture in (
            ("five numbers", "$pad('', 999, '0') & 'x'", "[d][f][W][w][X]"),
            ("numbers in words", "$pad('', 990, 'six') & 'x'", "[Yw][Mw][Dw]"),
            ("names", "$pad('', 900, 'a')", "[MNn][FNn][xNn]"),
        )
    ),
    Case("a width with a sign", "$fromMillis(0, '[D,+1500000000]')", "U1001"),
    Case("a width in groups", "$fromMillis(0, '[D,9_9_9_9_9_9_9_9_9]')", "U1001"),
    *(
        Case(f"a match that goes back, {name}", f"({_BACKWARDS}{use})", "T1010")
        for name, use in (
            ("replaced", "$replace($p, function($s){$m()}, '', 3000)"),
            ("split at", "$split($p, function($s){$m()}, 3)"),
        )
    ),
    *(
        Case(
            f"forty parameters that {name}",
            f"(function($a)<{kind * 40}s:x>{{1}})({','.join('1' * 40)})",
            "U1001",
        )
        for name, kind in (("may be missing", "x?"), ("may be the context", "x-"))
    ),
    Case("eight thousand chained functions", "1" + "~>$f" * 8_000, "U1001"),
    Case("three thousand parents", "a.(" + "%." * 3_000 + "a)", "U1001"),
    Case(
        "a list of a text as a position", "($v := $append([1..9999], 'a'); [1..20000][$v])", "U1001"
    ),
    Case(
        "fields of lists, all of them",
        "($b := [1..20]; $o := $merge($map([1..10000], function($i){{$string($i): $b}})); $o.*)",
        "U1001",
    ),
    Case(
        "a join of a thousand names, grouped",
        "[1]." + ".".join(f"$@$a{at}" for at in range(1_000)) + ".[1..5000]{'a': $}",
        "U1001",
    ),
    Case("a picture of a megabyte", "$formatInteger(5, $pad('', 999999, '#,0.'))", "U1001"),
    Case(
        "a picture to read by of a megabyte", "$parseInteger('5', $pad('', 999999, '0,'))", "U1001"
    ),
)

#: Those that are stopped only after a part of a second.
LONG: Final = (
    Case("endless recursion", "($f := function($n){$f($n + 1)}; $f(1))", "U1001"),
    Case(
        "Ackermann of 3 and 9",
        "($a := function($m, $n){$m = 0 ? $n + 1 : "
        "$n = 0 ? $a($m - 1, 1) : $a($m - 1, $a($m, $n - 1))}; $a(3, 9))",
        "U1001",
    ),
    Case(
        "Fibonacci of 30",
        "($f := function($n){$n < 2 ? $n : $f($n - 1) + $f($n - 2)}; $f(30))",
        "U1001",
    ),
    Case(
        "a function that calls what it is given",
        "(function($x){$x($x)})(function($x){$x($x)})",
        "U1001",
    ),
    Case(
        "two functions that call each other",
        "($f := function($n){$g($n)}; $g := function($n){$f($n)}; $f(1))",
        "U1001",
    ),
    Case(
        "a list asked for its truth thirty thousand times",
        "($x := $map([1..1000], function($i){0}); $map([1..30000], function($i){$x or false}))",
        "U1001",
    ),
    Case(
        "an object's text ten thousand times",
        "($o := $merge($map([1..9000], function($i){{$string($i): $i}})); "
        "$map([1..9000], function($i){$string($o)}))",
        "U1001",
    ),
    Case(
        "two lists compared ten thousand times",
        "($x := [1..100000]; $y := [1..100000]; $map([1..10000], function($i){$x = $y}))",
        "U1001",
    ),
    Case(
        "a list added up ten thousand times",
        "($x := [1..100000]; $map([1..10000], function($i){$sum($x)}))",
        "U1001",
    ),
    Case(
        "an object of itself, all its descendants",
        '($x := $reduce([1..60], function($a, $i){{"a": $a, "b": $a}}, [0]); $x.**)',
        "U1001",
    ),
    Case(
        "an object of itself, changed",
        '($x := $reduce([1..60], function($a, $i){{"a": $a, "b": $a}}, [0]); $x ~> |**|{"c": 1}|)',
        "U1001",
    ),
    Case(
        "an object of itself, its distinct values",
        '($x := $reduce([1..60], function($a, $i){{"a": $a, "b": $a}}, [0]); $distinct([$x, $x]))',
        "U1001",
    ),
    Case(
        "a text that grows when it is replaced",
        '$replace($pad("a", 1000000, "a"), "a", "bb")',
        "U1001",
    ),
    Case(
        "a text hashed ten thousand times",
        '$map([1..10000], function($i){$hash($pad("x", 1000000), "SHA-512")})',
        "U1001",
    ),
    Case(
        "a pattern that backtracks",
        '$contains($pad("a", 60, "a") & "b", /(?:(?:a|aa)+)+$/)',
        "U1001",
    ),
    Case(
        "a pattern that backtracks a little, a thousand times",
        '$map([1..1000], function($i){$contains($pad("a", 22, "a") & "b", /(a|a)*$/)})',
        "U1001",
    ),
    Case(
        "a pattern nested five thousand deep",
        '$contains("a", /' + "(a" * 5000 + ")" * 5000 + "/)",
        "U1001",
    ),
    Case("fifteen thousand additions", "1+" * 15000 + "1", "U1001"),
    Case("sixteen thousand steps", "a." * 15000 + "a", "U1001"),
    Case("ten thousand functions", "λ(){" * 7000, "U1001"),
    Case("eight thousand conditions", "a?b:" * 8000 + "1", "U1001"),
    Case("ten thousand pipes", "a~>" * 10000 + "a", "U1001"),
)

SYNTAX: Final = (
    Case("nothing", "", "S0207"),
    Case("sixty thousand characters", '{"\'" + "x" * 60000 + "\'"}', "S0202"),
    Case("thirty thousand opening brackets", "(" * 30000, "U1001"),
    Case("thirty thousand lists", "[" * 30000, "U1001"),
    Case("thirty thousand signs", "-" * 30000 + "1", "U1001"),
    Case("objects in objects", '{"a":' * 6000 + "1" + "}" * 6000, "S0500"),
    Case("lists in lists", "[" * 12000 + "]" * 12000, "U1001"),
    Case("a text that does not end", '"abc', "S0101"),
    Case("a name in quotes that does not end", "`abc", "S0105"),
    Case("a comment that does not end", "1 /* abc", "S0106"),
    Case("a pattern that does not end", "/abc", "S0302"),
    Case("an unknown escape", '"\\q"', "S0103"),
    Case("half an escape", '"\\u12"', "S0104"),
    Case("an operator at the end", "1 +", "S0207"),
    Case("two values", "1 2", "S0201"),
    Case("a NUL", "\x00", "undefined"),
    Case("a value that is assigned to", "1 := 2", "S0212"),
    Case("a parameter that is no variable", "function(1){1}", "S0208"),
    Case("a signature that is none", "function($a)<x-y-z>{$a}", "undefined"),
    Case("a partial call of nothing", "$f(?", "S0203"),
    Case("a sort of nothing", "a^()", "S0211"),
    Case("an index of no variable", "a#b", "S0214"),
    Case("a parent of nothing", "%", "S0217"),
)
