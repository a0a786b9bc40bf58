"""JSONata as it is written: one row for each corner of the language, on both engines.

`expression  ->  result`: JSON, `undefined`, or the code of the error. jsonata-python alone gives
what the door gives, which tries the closures first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonata import JException, Jsonata

from holdfast.asl.jsonata import fallback, values
from holdfast.asl.jsonata.closures import compile_closures
from holdfast.asl.jsonata.jsonata import (
    UNDEFINED,
    EvaluationMoment,
    JsonataError,
    compile_expression,
)
from holdfast.asl.jsonata.runtime import EvaluationRun
from holdfast.asl.jsonata.tree import UnsupportedNode, is_lookup
from holdfast.asl.jsonata.values import BUILT_INS

MOMENT = EvaluationMoment(now_ms=1_790_000_000_000, draw=lambda: 0.25)
BINDINGS: dict[str, Any] = {
    "n": None,
    "xs": [3, 1, 2],
    "o": {"a": 1, "b": [1, 2]},
    "d": ["x", "y"],
    "nested": [[1, 2], [3]],
    "rows": [{"k": "x", "v": 1}, {"k": "y", "v": [2, 3]}, {"k": "x", "v": None}],
    "big": 10**400,
    "z": -0.0,
}

LANGUAGE = r"""
# Numbers as text
$formatNumber($nothing, "0")  ->  undefined
$formatNumber(1, $nothing)  ->  undefined
$formatNumber(12345.678, "#,##0.00")  ->  "12,345.68"
$formatNumber(-1.5, "0.0;(0.0)")  ->  "(1.5)"
$formatNumber(-1.5, "0.0")  ->  "-1.5"
$formatNumber(0.14, "01%")  ->  "14%"
$formatNumber(0.014, "0.0‰")  ->  "14.0‰"
$formatNumber(1234.5678, "00.000e0")  ->  "12.346e2"
$formatNumber(0.00012, "0.0e0")  ->  "1.2e-4"
$formatNumber(0, "0.0e0")  ->  "0.0e0"
$formatNumber(5, "#")  ->  "5"
$formatNumber(0, "#")  ->  "0"
$formatNumber(0.5, "#.#e0")  ->  "0.5e0"
$formatNumber(5, "#e0")  ->  "0.5e1"
$formatNumber(0.3, ".#e0")  ->  ".3e0"
$formatNumber(123456, "#,##0e0")  ->  "1e5"
$formatNumber(1, "0;0;0")  ->  D3080
$formatNumber(1, "a")  ->  D3086
$formatNumber(1, "0.0.0")  ->  D3081
$formatNumber(1.1, "0.00,00")  ->  "1.10,00"
$formatNumber(1e308*10, "0")  ->  D1001
$formatNumber(12, "#.##", {"decimal-separator": "!"})  ->  D3086
$formatNumber(1, $pad("0", 2000, "0"))  ->  U1001
$formatNumber(1.5, "0.0", {"minus-sign": "m"})  ->  "1.5"

# Times
$toMillis("2026")  ->  1767225600000
$toMillis("2026-02-03T04:05:06.789+01:00")  ->  1770087906789
$toMillis("2026-02-03T04:05:06-0100")  ->  1770095106000
$toMillis("2026-13-01")  ->  D3110
$toMillis("soon")  ->  D3110
$toMillis($nothing)  ->  undefined
$toMillis("13:45", "[H]:[m]")  ->  1789998300000
$toMillis("13:45", "[h]:[m]")  ->  D3136
$toMillis("5 2026", "[d] [Y]")  ->  1767571200000
$toMillis("x", "[Q]")  ->  D3132
$toMillis("2020+01", "[Y0001]+[M01]")  ->  1577836800000
$toMillis("2020(x)01", "[Y0001](x)[M01]")  ->  1577836800000
$toMillis("20200102", "[Y0001][M01][D01]")  ->  1577923200000
$toMillis("Monday, 1st January 2020", "[FNn], [D1o] [MNn] [Y]")  ->  1577836800000
$formatInteger($nothing, "w")  ->  undefined
$formatInteger(5, $nothing)  ->  T0410
$formatInteger(12, "w")  ->  "twelve"
$parseInteger($nothing, "0")  ->  undefined
$parseInteger("5", $nothing)  ->  T0410
$parseInteger("twelve", "w")  ->  12
$spread([{"a": 1, "b": [2]}, 3, [{"c": 1}, [4]], []])  ->  [{"a": 1}, {"b": [2]}, 3, {"c": 1}, 4]
$spread([{"a": 1}])  ->  [{"a": 1}]
$spread({"a": 1})  ->  {"a": 1}
$spread([])  ->  undefined
$spread("a")  ->  "a"
$string($substringBefore($nothing, "a"), true)  ->  undefined
$string($substringAfter($nothing, "a"), true)  ->  undefined
$string($substringBefore("a-b-c", "-"), true)  ->  "a"
$string($substringAfter("a-b-c", "-"), true)  ->  "b-c"
$string($substringAfter("abc", "-"), true)  ->  "abc"
$distinct([1, 1.0, -0, 0, true, "1"])  ->  [1, 0, true, "1"]
$distinct($parse("[10000000000000000000001, 1e22, 10000000000000000000000]")) ~> $count()  ->  2
{"a": 1}.$uppercase()  ->  T0411
$lookup([{"a": 1}, {"a": 2}], "a")  ->  [1, 2]
{"a": 1, "b": [2, 3]}.*  ->  [1, 2, 3]
[{"a": 1}].*  ->  1
{"a": {"b": 1}} ~> |a|{"c": 2}, "b"|  ->  {"a": {"c": 2}}
[1..5][[1, 2]]  ->  [2, 3]
$fromMillis($nothing)  ->  undefined
$fromMillis(1e20)  ->  D1001
$fromMillis(0, "[Y9999999]")  ->  "0001970"
$fromMillis(0)  ->  "1970-01-01T00:00:00.000Z"
$now("[Y]")  ->  "2026"
$fromMillis(0, "[Y]", "xx")  ->  D1000
$fromMillis(0, "[Y", "+0100")  ->  D3135
$fromMillis(0, "[M01]/[D01] [h]:[m] [P]", "-0500")  ->  "12/31 7:00 pm"
$fromMillis(0, "[Yw]")  ->  "one thousand, nine hundred and seventy"
$toMillis("x", "[Y]")  ->  undefined
$toMillis("12", "[Y]-[D]")  ->  undefined
$toMillis("1", "[YN]")  ->  D3133
$toMillis("mon", "[FNn]")  ->  D3132
$now($pad("[Y]", 2000, "x"))  ->  U1001

# Regular expressions
$contains("abc",/B/i)  ->  true
$contains("abc",/x/)  ->  false
$split("a1b22c",/\d+/)  ->  ["a", "b", "c"]
$replace("abc",/(b)(c)/,"$2$1$$$0$12$9$x")  ->  "acb$bcb2$x"
$replace("abc",/b/,function($m){$uppercase($m.match)})  ->  "aBc"
$replace("abc",/b/,function($m){1})  ->  D3012
$match("ab12",/(\d)/,1)  ->  {"match": "1", "index": 2, "groups": ["1"]}
$match("ab",/x/,-1)  ->  D3040
$match($nothing,/x/)  ->  undefined
$match("a",/x*/)  ->  D1004
"a" ~> /x*/  ->  D1004
/a[\d\]]$/m  ->  undefined
"a\nb" ~> $match(/a$/m)  ->  {"match": "a", "index": 0, "groups": []}
"ab" ~> $match(/[^]b/)  ->  {"match": "ab", "index": 0, "groups": []}
"ab" ~> $contains(/[]/)  ->  false
"a{b" ~> $contains(/a{b/)  ->  S0302
"aa" ~> $contains(/a{2}/)  ->  true
"ab" ~> $match(/(?<x>a)/)  ->  {"match": "a", "index": 0, "groups": ["a"]}
"ab" ~> $match(/(?R)/)  ->  S0302
"ab" ~> $match(/(/)  ->  S0302
"ab" ~> $contains(/\w\W?/)  ->  true
"a{b}" ~> $contains(/a{b}/)  ->  true
"ab" ~> $match(/a**/)  ->  S0302
$replace("abcdefghijkl", /(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)/, "$10$11$12$99")  ->  "ja1a2i9kl"

# Texts
$substring($nothing, 1)  ->  undefined
$substring("abc", -2)  ->  "bc"
$substring("abc", 1, 0)  ->  ""
$substring("abc", 1, 1)  ->  "b"
$substringBefore("abc","b")  ->  "a"
$substringBefore("abc","x")  ->  "abc"
$substringBefore($nothing,"b")  ->  undefined
$substringAfter("abc","b")  ->  "c"
$substringAfter("abc","x")  ->  "abc"
$substringAfter($nothing,"b")  ->  undefined
$contains($nothing,"b")  ->  undefined
$contains("abc","b")  ->  true
$contains("abc", $nothing)  ->  undefined
$split($nothing,",")  ->  undefined
$split("a,b",",")  ->  ["a", "b"]
$split("abc","")  ->  ["a", "b", "c"]
$split("a,b,c",",",2)  ->  ["a", "b"]
$split("a,b",",",-1)  ->  D3020
$replace($nothing,"a","b")  ->  undefined
$replace("aba","a","x")  ->  "xbx"
$replace("aba","a","x",1)  ->  "xba"
$replace("aba","","x")  ->  D3010
$replace("aba","a","x",-1)  ->  D3011
$join($nothing,",")  ->  undefined
$join(["a","b"])  ->  "ab"
$join(["a"],1)  ->  T0410
$pad("a",3)  ->  "a  "
$pad("a",-3,"xy")  ->  "xya"
$pad("a",1)  ->  "a"
$pad($nothing,1)  ->  undefined
$pad("a", 9999999)  ->  U1001
$trim("  a   b ")  ->  "a b"
$trim($nothing)  ->  undefined
$encodeUrl("ä b")  ->  "%C3%A4%20b"
$encodeUrlComponent("a/b?c")  ->  "a%2Fb%3Fc"
$decodeUrl("%zz")  ->  "%zz"
$decodeUrl("%E4")  ->  D3140
$encodeUrl($nothing)  ->  undefined
$substring("abc", "x")  ->  T0410
$uppercase($missing)  ->  undefined
$uppercase(1)  ->  T0410
$length("abc")  ->  3
$substring(?, 1)("abc")  ->  "bc"
$pad("a", 0)  ->  "a"
$pad("a", -2.9)  ->  " a"
$pad("a", "3")  ->  T0410
$trim("a\n\tb  ")  ->  "a b"
$trim(1)  ->  T0410
$replace($pad("", 2000, "a"), "a", $pad("", 2000, "b"))  ->  U1001
$join($map([1..600], function($i){$pad("", 4000, "x")}))  ->  U1001
$substring(?, 0, 1) ~> $uppercase  ->  undefined
$substring(?, 0, 1)  ->  undefined

# Arithmetic
$string(1/0)  ->  D3001
1e308 * 10  ->  D1001
$string(1e308 * 10)  ->  D3001
$string([1e308 * 10])  ->  D1001
$number("0x1F")  ->  31
$number("1e999")  ->  D3030
$number("abc")  ->  D3030
$number(true)  ->  1
$number($nothing)  ->  undefined
$number("12.50")  ->  12.5
$number(null)  ->  T0410
$round(1e300, 300)  ->  1e+300
$round(5, -400)  ->  0
$round(2.5)  ->  2
$round($nothing)  ->  undefined
$power(2, 10)  ->  1024
$power(0, -1)  ->  D3061
$power(-1, 0.5)  ->  D3061
$power($nothing, 1)  ->  undefined
$sum($nothing)  ->  undefined
$average($nothing)  ->  undefined
$average([])  ->  undefined
$average([1,2])  ->  1.5
$random(5)  ->  0.730519863614471
$range(1,5,2)  ->  [1, 3, 5]
$range(5,1,-2)  ->  [5, 3, 1]
$range(1,5,0)  ->  undefined
$range(1,5)  ->  undefined
$range(5,1,1)  ->  undefined
$range(1)  ->  T0410
$range(1,5,1,1)  ->  T0410
$range(3,3,1)  ->  3
$range(-1.7,2,1)  ->  [-1, 0, 1, 2]
$range(5,1,-1.5)  ->  [5, 4, 3, 2, 1]
$range(1,9999999,1)  ->  U1001
$range($nothing,1,1)  ->  undefined
$max([1,2])  ->  2
$min([])  ->  undefined
$abs(-1)  ->  1
$sqrt(4)  ->  2
$sqrt(-1)  ->  D3060

# Lists and objects
$sort([3,1,2])  ->  [1, 2, 3]
$sort([3])  ->  [3]
$sort(["b","a"])  ->  ["a", "b"]
$sort([1,"a"])  ->  D3070
$sort($nothing)  ->  undefined
$sort([3,1,2], function($a,$b){$a<$b})  ->  [3, 2, 1]
$distinct([1,1,"1",true,[1],[1],{"a":1},{"a":1}])  ->  [1, "1", true, [1], {"a": 1}]
$distinct(1)  ->  1
$distinct($xs[$>1])  ->  [3, 2]
$distinct([5..5])  ->  [5]
$distinct([1, 1.0])  ->  [1]
$distinct([[], [[]], {"a": 1}, {"a": true}, "a"])  ->  [[], [[]], {"a": 1}, {"a": true}, "a"]
[$distinct([1, 1])]  ->  [1]
$distinct($nothing)  ->  undefined
$shuffle([1,2,3])  ->  [2, 3, 1]
$shuffle([1])  ->  [1]
$shuffle($nothing)  ->  undefined
$clone($o)  ->  {"a": 1, "b": [1, 2]}
$partition([1,2,3],2)  ->  [[1, 2], [3]]
$partition([1,2,3],2.9)  ->  [[1, 2], [3]]
$partition([1,2,3])  ->  [[1, 2, 3]]
$partition([],2)  ->  undefined
$partition([1],0)  ->  undefined
$partition([1],-0.5)  ->  undefined
$partition([1],-1)  ->  D3137
$partition([1],"2")  ->  T0410
$partition(1,2)  ->  T0412
$partition(null,2)  ->  T0412
$partition($nothing,1)  ->  undefined
$append($nothing,1)  ->  1
$append(1,$nothing)  ->  1
$append([1],2)  ->  [1, 2]
$merge($nothing)  ->  undefined
$merge([{"a":1},{"b":2}])  ->  {"a": 1, "b": 2}
$keys($nothing)  ->  undefined
$lookup($o, "a")  ->  1
$each($o, function($v, $k){$k})  ->  ["a", "b"]
$sift($o, function($v){$v = 1})  ->  {"a": 1}
$spread($o)  ->  [{"a": 1}, {"b": [1, 2]}]
$reverse([1,2])  ->  [2, 1]
$zip([1],[2])  ->  [[1, 2]]
$single([1,2], function($x){$x=1})  ->  1
$reduce($xs, function($x){$x})  ->  D3050
$reduce([], function($x,$y){$x})  ->  undefined
$keys([{"a":1},{"b":2}])  ->  ["a", "b"]
$sort($nested, function($a, $b){$a[0] < $b[0]})  ->  [[3], [1, 2]]
$zip($nothing)  ->  []
$single([1,2])  ->  D3138

# The language
$string($sum)  ->  ""
"a" & $sum  ->  "a"
[1e308 * 10][0]  ->  D1001
[$sum, 1]  ->  [null, 1]
{"f": $sum, "a": 1}  ->  {"a": 1}
$parse($nothing)  ->  undefined
$parse("[1.0]")  ->  [1]
$parse("NaN")  ->  D3137
$parse("")  ->  D3137
$parse("{} {}")  ->  D3137
$parse('{"a":1,"a":2}')  ->  D3137
$parse("1e400")  ->  D3137
$parse("1" & $pad("", 400, "0"))  ->  D3137
$parse("9" & $pad("", 308, "9"))  ->  D3137
$parse("-1" & $pad("", 308, "0")) < 0  ->  true
$parse(null)  ->  T0410
$parse("{}", 1)  ->  T0410
$hash("a","SHA-1")  ->  "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
$hash("a","X")  ->  D3137
$hash("a","md5")  ->  D3137
$hash("a")  ->  undefined
$hash("a",5)  ->  T0410
$hash($nothing,"MD5")  ->  undefined
$hash("a","MD5")  ->  "0cc175b9c0f1b6a831c399e269772661"
$map(["a"], $uppercase)  ->  "A"
$map([1], $uppercase)  ->  T0410
($sum := 5; $sum + 1)  ->  6
($f := function($x){$x}; $g := $f; $g(1))  ->  1
($f := function($x){$x}; [$f])  ->  [null]
($f := function($x){$x}; $f := 3; $f)  ->  3
($f := 3; $f := function($x){$x + 1}; $f(2))  ->  3
$o{"k": a}  ->  {"k": 1}
$o.b[$ = 2]  ->  2
{"a": 1, "a": 2}  ->  D1009
$xs.{"a": $}  ->  [{"a": 3}, {"a": 1}, {"a": 2}]
[[1,2],[3]].("x" & 1)  ->  ["x1", "x1"]
[[1,2],[3]].{"a": 1}  ->  [{"a": 1}, {"a": 1}]
[[1,2],[3]].{"a" & "b": 1}  ->  [{"ab": 1}, {"ab": 1}]
()  ->  undefined
$o.b#$i  ->  [1, 2]
$xs@$x  ->  [3, 1, 2]
$o.*  ->  [1, 1, 2]
$o.**  ->  [{"a": 1, "b": [1, 2]}, 1, 1, 2]
$o.b[0]  ->  1
$xs^(>$)  ->  [3, 2, 1]
function($x){$x}(4)  ->  4
$map($xs, function($x, $x){$x})  ->  [0, 1, 2]
($f := function($x){$x}; $map($xs, $f))  ->  [3, 1, 2]
($f := function($x){$g($x)}; $g := function($y){$y * 2}; $f(2))  ->  4
($f := function($n){$n < 1 ? 0 : $f($n - 1)}; $f(5))  ->  0
$o.a ~> $string  ->  "1"
1 ~> $string()  ->  "1"
$xs ~> $sum  ->  6
$xs ~> $sum()  ->  6
$xs ~> $append(4) ~> $sort() ~> $map(function($x){$x * 2})  ->  [2, 4, 6, 8]
$xs ~> $filter(function($x){$x > 2})  ->  3
$xs ~> $append(4)[0]  ->  [3, 1, 2, 4]
($f := function($x, $y){$x - $y}; 5 ~> $f(2))  ->  3
($f := function($x){$x ~> $string()}; 5 ~> $f)  ->  "5"
($f := function($xs){$xs ~> $filter(function($x){$x > 2})}; $xs ~> $f)  ->  3
$nothing ~> $uppercase  ->  undefined
1 ~> $uppercase()  ->  T0410
1 ~> 2  ->  T2006
1 ~> $nothing  ->  T2006
1 ~> $nothing()  ->  T1006
$xs ~> $error  ->  T0410
$n ? 1 : 2  ->  2
$o.a = 1 or $x  ->  true
$missing or true  ->  true
"a" in $d  ->  false
-$missing  ->  undefined
-"a"  ->  D1002
-$o.a  ->  -1
$o.(a + 1)  ->  2
$xs[-1]  ->  2
$xs[$ > 1 and $ < 3]  ->  2
["a"] & ["b"]  ->  "[\"a\"][\"b\"]"
1..3  ->  S0201
[1..3]  ->  [1, 2, 3]
[3..1]  ->  []
[$missing..3]  ->  []
["a"..3]  ->  T2003
[1.5..3]  ->  T2003
$o.b.$string()  ->  ["1", "2"]
$type($sum)  ->  "function"
$exists($sum)  ->  true
$boolean([0, [0]])  ->  false
$not([])  ->  true
$map($xs, function($x,$i,$a){$count($a)})  ->  [3, 3, 3]
$o ~> |$|{"a": 9}|  ->  {"a": 9, "b": [1, 2]}
|$|{"a": 9}|($o)  ->  {"a": 9, "b": [1, 2]}
$f(?)  ->  T1008
($s := $substring(?, 1); $s("abc"))  ->  "bc"
($f := function($x)<n:n>{$x}; $f("a"))  ->  T0410
{"a": 1}["a"]  ->  {"a": 1}
$o["a"]  ->  {"a": 1, "b": [1, 2]}
"x"[0]  ->  "x"
(1;2;3)  ->  3
a.b  ->  undefined
$.a  ->  undefined
$$.a  ->  undefined
%.a  ->  S0217
$string(/a/)  ->  ""
[function($x){$x}]  ->  [null]
{"f": function($x){$x}}  ->  {}
$string($)  ->  undefined
$nested.{"a": 1}  ->  [{"a": 1}, {"a": 1}]
$nested.({"a": $}.a)  ->  [1, 2, 3]
$nested.{"a" & "b": 1}  ->  [{"ab": 1}, {"ab": 1}]
$xs[0]#$i.($i)  ->  0
$xs#$i[$i = 0]  ->  3
[$f := function($x){$x}]  ->  [null]
"x"(1)  ->  T1006
foo(1)  ->  T1006
[$sum, [1..600000]]  ->  U1001
[$sum, $reduce([1..250], function($a, $i){{"a": $a}}, 1)]  ->  U1001
1 + $sum  ->  T2002
$sum + 1  ->  T2001
true and (1 + "a")  ->  T2002
true and $error("x")  ->  D3137
false or (1 + "a")  ->  T2002
"\q"  ->  S0103
"\uZZZZ"  ->  S0104
"\u12"  ->  S0104
"\uD834\uDD1E"  ->  "𝄞"
"\\uD834"  ->  "\\uD834"
$formatBase(1, 2.5)  ->  "1"
$formatBase(1, 99)  ->  D3100
$formatBase(10, 2)  ->  "1010"
$formatInteger(1, "")  ->  D3130
$formatInteger(12, "I")  ->  "XII"
$formatInteger(12, "#")  ->  D3130
$formatInteger(1234, "#,##0")  ->  "1,234"
$parseInteger("XII", "I")  ->  12
$parseInteger("x", "0")  ->  D1000
{"a" & "": 1, "a": 2}  ->  D1009
{1: 2}  ->  T1003
{1 & "": 2}  ->  {"1": 2}
{$nothing: 1, "b": 2}  ->  {"b": 2}
{$n: 1}  ->  T1003
($f := function($g){$g(1)}; $f(2))  ->  T1006
($f := 5; $f(1))  ->  T1006
($m := /a/; $m("banana").match)  ->  "a"
($m := /a/; $m("banana").next().start)  ->  3
($m := /x/; $m("banana"))  ->  undefined
($m := /x/; $m(1))  ->  undefined
$map([1..80000], function($i){$i})  ->  U1001
($f := function($n){$n < 1 ? 0 : $map([$n, 0], function($x){$f($x - 1)})}; $count($f(120)))  ->  2
$string($big)  ->  D1001
"a" & $big  ->  D1001
$string($z)  ->  "0"
$big + 1.5  ->  D1001
$big * 2  ->  D1001
$xs ~> $map(?, function($x){$x})  ->  [3, 1, 2]
foo(?)  ->  T1008
$o.foo(?)  ->  T1008
substring(?, 1)  ->  T1007
$o.b ~> $sum  ->  3
$o.b.($ * 2) ~> $sum  ->  6
$o ~> |$|{}, ["a"]|  ->  {"b": [1, 2]}
$o ~> |$|5|  ->  T2011
$o ~> |nothing|{"x": 1}|  ->  {"a": 1, "b": [1, 2]}
[]{"a": 1}  ->  {"a": 1}
$nothing{"a": 1}  ->  {"a": 1}
$d{$: 1}  ->  {"x": 1, "y": 1}
[1,2]{"k": $}  ->  {"k": [1, 2]}
$rows{k: v}  ->  {"x": [1, null], "y": [2, 3]}
$rows{k: $count($)}  ->  {"x": 2, "y": 1}
$rows{k: {"n": $count(v), "v": v}}.x  ->  {"n": 2, "v": [1, null]}
$rows{k: v[0]}  ->  {"x": [1, null], "y": 2}
$rows{k: v, "z": k}  ->  {"x": [1, null], "z": ["x", "y", "x"], "y": [2, 3]}
$rows{k: $, "x": $}  ->  D1009
$rows{v: k}  ->  T1003
$rows{nothing: k}  ->  {}
$rows{k: nothing}  ->  {}
$rows[k = "x"]{k: v}  ->  {"x": [1, null]}
$rows[1]{k: v}  ->  {"y": [2, 3]}
$rows^(>k){k: v}  ->  {"y": [2, 3], "x": [1, null]}
$rows.v{$string(): $}  ->  {"1": 1, "2": 2, "3": 3, "null": null}
$rows.v{"k": $}  ->  {"k": [1, 2, 3, null]}
$rows.{"q": k}{q: $count($)}  ->  {"x": 2, "y": 1}
$rows{k: v}.x  ->  [1, null]
$rows{k: v}.x[0]  ->  1
$rows{k: v}[0]  ->  S0209
$rows{k: v}{k: v}  ->  S0210
($rows{k: v}){"q": x}  ->  {"q": [1, null]}
$rows.({k: v})  ->  [{"x": 1}, {"y": [2, 3]}, {"x": null}]
$map($rows, function($r){$r{k: v}})  ->  [{"x": 1}, {"y": [2, 3]}, {"x": null}]
$map($xs, function($x){$x}){"k": $}  ->  {"k": [3, 1, 2]}
$filter($xs, function($x){$x = 1}){"k": $}  ->  {"k": 1}
$keys($o){$: 1}  ->  {"a": 1, "b": 1}
$nested{"k": $}  ->  {"k": [1, 2, 3]}
$nested{$string($): 1}  ->  {"[1,2]": 1, "[3]": 1}
$nested[[0]]{$string($): $}  ->  {"[1,2]": [1, 2]}
($w := {"n": $nested}; $w.n[[0]]{$string($): $})  ->  {"[1,2]": [1, 2]}
$nested.{"k": $}  ->  [{"k": [1, 2]}, {"k": 3}]
$n{"k": $}  ->  {"k": null}
"x"{"k": $}  ->  {"k": "x"}
{"a": 1}{"b": a}  ->  {"b": 1}
($x := 1; $rows{k: $x} ~> $merge())  ->  {"x": 1, "y": 1}
$rows{k: ($t := v; $t)}  ->  {"x": [1, null], "y": [2, 3]}
$rows{"k": ($rows := 1)}  ->  {"k": 1}
$xs@$x#$i.{"x": $x, "i": $i}  ->  [{"x": 3, "i": 0}, {"x": 1, "i": 1}, {"x": 2, "i": 2}]
$o.b@$x.$o.b@$y.[$x, $y]  ->  [1, 1, 1, 2, 2, 1, 2, 2]
$o.b@$x{$string($x): $x}  ->  {"1": 1, "2": 2}
$o.b@$x[$x > 9]{"k": $x}  ->  {}
($y := $f(1); $f := function($x){$x}; $f(2))  ->  T1006
$o.b@$x{"k": $x}  ->  {"k": [1, 2]}
$o.b#$i{"k": $i}  ->  {"k": [0, 1]}
$boolean($sum)  ->  false
$not($sum)  ->  true
($y := 1; ($y := 2); $y)  ->  1
$nested[0][1]  ->  2
$map($nested, function($x){$x[0]})  ->  [1, 3]
$xs^($)  ->  [1, 2, 3]
$d^(>$, <$)  ->  ["y", "x"]
[1,"a"]^($)  ->  T2007
[true]^($)  ->  true
[{"a":1},{"b":1}]^(a)  ->  [{"a": 1}, {"b": 1}]
$error()  ->  D3137
$assert(false, "no")  ->  D3141
$assert(true, "no")  ->  undefined
$base64encode("a")  ->  "YQ=="
$base64decode("YQ==")  ->  "a"
$exists()  ->  T0410
$millis() = 1790000000000  ->  true
[]@$x{"k": $x}  ->  {}
$nothing@$x{"k": $x}  ->  {}
[1..1.5]  ->  T2004
$xs[0].$sum([$, 1])  ->  4
$o.b[$$.a = 1]  ->  undefined
$o[a = 1].b  ->  [1, 2]
$sum.x  ->  undefined
[[1]].a  ->  undefined
[1..3].($ * 2)  ->  [2, 4, 6]
[1..3].$string()  ->  ["1", "2", "3"]
[3..1].($ * 2)  ->  []
[].a  ->  []
$xs.([].a)  ->  [[], [], []]
[$o].a  ->  1
[$o, $o].b  ->  [1, 2, 1, 2]
[$o].b  ->  [1, 2]
[$rows].v[0]  ->  [1, 2, null]
[[1, 2], [3]].$count($)  ->  [2, 1]
[1..2].{"a": $}  ->  [{"a": 1}, {"a": 2}]
[1..2].[$]  ->  [[1], [2]]
[1..3].($){$string($): $}  ->  {"1": 1, "2": 2, "3": 3}
$o.([a, 5].($ + 1))  ->  [2, 6]
($x := ["a", {"b": [[1]]}]; $x.b[0])  ->  1
($x := ["a", {"b": [[]]}]; $x.b[0])  ->  undefined
-$o  ->  D1002
$o.b[[0, 1]]  ->  [1, 2]
$o.b[1.9]  ->  2
$xs[-9]  ->  undefined
$nested[$[0] = 1]  ->  [1, 2]
[$sum, $reduce([1..20], function($a, $i){{"a": $a, "b": $a}}, 1)]  ->  U1001
($nothing ? ($f := function($x){$x}) : 0; $f(1))  ->  T1006
{"a" & "b": $nothing, "c": 1}  ->  {"c": 1}
$map($xs, function($a, $b, $c, $d){$a})  ->  [3, 1, 2]
$nothing[$ > 9]{"k": $}  ->  {}
$sum and $parse("NaN")  ->  false
true and $parse("NaN")  ->  D3137
"""
ROWS = [row.split("  ->  ") for row in LANGUAGE.splitlines() if "  ->  " in row]


def shown(evaluate: Any) -> str:
    try:
        result = evaluate()
    except JsonataError as error:
        return error.code
    return "undefined" if result is UNDEFINED else json.dumps(result, ensure_ascii=False)


def at_the_door(text: str, bindings: dict[str, Any] = BINDINGS) -> str:
    return shown(lambda: compile_expression(text).evaluate(bindings, MOMENT))


def alone(text: str, bindings: dict[str, Any] = BINDINGS) -> str:
    return shown(lambda: fallback.evaluate(fallback.parse(text), EvaluationRun(bindings), MOMENT))


@pytest.mark.parametrize(("text", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_an_expression_means_the_same_in_both_engines(text: str, expected: str) -> None:
    assert (at_the_door(text), alone(text)) == (expected, expected)


def test_the_library_may_be_used_beside_us() -> None:
    """The library keeps the running evaluation in its own variable of the thread."""
    theirs = Jsonata("$sum([1, 2])")
    assert at_the_door("$formatBase(10, 2)") == '"1010"'
    assert Jsonata.CURRENT.jsonata is theirs
    assert theirs.evaluate(None) == 3
    del Jsonata.CURRENT.jsonata


NEXT = '"groups": [], "next": function(){$nothing}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'$match("abc", function($s){{{{"match": "b", "start": 1, "end": 2, {NEXT}}}}})', 1),
        (f'$split("abc", function($s){{{{"match": "b", "start": 1, "end": 2, {NEXT}}}}})', 2),
    ],
)
def test_a_function_may_stand_for_a_regular_expression(text: str, expected: int) -> None:
    found = json.loads(at_the_door(text))
    assert found == {1: {"match": "b", "index": 1, "groups": []}, 2: ["a", "c"]}[expected]


def test_a_finding_of_a_function_has_a_place() -> None:
    assert at_the_door('$match("abc", function($s){{"match": "b"}})') == "T1010"


def raises(error: Exception) -> EvaluationMoment:
    """A library that raises it: chance is the door through which it can be made to."""

    def draw() -> float:
        raise error

    return EvaluationMoment(0, draw)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "U1001"),
        (TimeoutError(), "U1001"),
        (RecursionError(), "U1001"),
        (KeyError("x"), "D1000"),
        (ValueError("Timezones must begin with + or -"), "D1000"),
        (JException("words of its own", -1), "D1000"),
        (JException("invalid grouping in picture argument", -1), "D3086"),
        (ValueError("invalid grouping in picture argument"), "D3086"),
    ],
)
def test_whatever_the_library_raises_is_an_error_of_jsonata(error: Exception, code: str) -> None:
    assert shown(lambda: compile_expression("$random()").evaluate({}, raises(error))) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [(TypeError(), "S0500"), (ValueError("invalid grouping in picture argument"), "D3086")],
)
def test_whatever_the_librarys_parser_raises_is_an_error_of_jsonata(
    error: Exception, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*_: object) -> None:
        raise error

    monkeypatch.setattr(fallback._PARSER, "parse", parse)
    assert shown(lambda: fallback.parse("1")) == code


def _filter_of_another_kind(tree: Any) -> None:
    tree.predicate[0].type = "slice"


def _another_sign(tree: Any) -> None:
    tree.value = "!"


@pytest.mark.parametrize(
    ("text", "change"),
    [("$xs[0]", _filter_of_another_kind), ("1 + 1", _another_sign), ("-$n", _another_sign)],
)
def test_a_text_that_another_library_may_parse_is_left_to_it(text: str, change: Any) -> None:
    tree = fallback.parse(text)
    compile_closures(tree, fallback.FUNCTION_NAMES)
    change(tree)
    with pytest.raises(UnsupportedNode):
        compile_closures(tree, fallback.FUNCTION_NAMES)


def test_calls_too_deep_for_closures_are_left_to_the_library() -> None:
    """Each level is two deep, a function and its $map: the limit is met in either of them."""
    recursive = "$f := function($n){$n < 1 ? 0 : $map([$n - 1], function($x){$f($x)})}"
    for called in ("$f(60)", "$map([1], function($y){$f(60)})"):
        text = f"({recursive}; {called})"
        assert at_the_door(text) == alone(text)


def test_a_group_that_is_not_in_the_match_is_empty() -> None:
    found = json.loads(at_the_door(r'$match("ab1", /[a-z](\d)?/)'))
    assert [match["groups"] for match in found] == [[""], ["1"]]


@pytest.mark.parametrize("document", [[1, 2], {"a": 1}, "text"])
def test_the_document_is_one_value_also_when_it_is_a_list(document: Any) -> None:
    assert at_the_door("$", {"$": document}) == json.dumps(document)
    text = at_the_door("$string()", {"$": document})
    assert json.loads(text) == (
        document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
    )


def test_both_engines_together_spend_one_budget() -> None:
    """Each alone would get to the error of the last line."""
    text = '($map([1..20000], function($i){$i + 1}); -"a")'
    assert alone(text) == "D1002"
    assert at_the_door(text) == "U1001"
    assert at_the_door(text, {"$": []}) == "D1002", "closures leave lists alone at once"


@pytest.mark.parametrize("engine", [alone, at_the_door])
def test_an_expression_that_costs_more_than_its_price_is_stopped_by_the_clock(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "$count($map([1..2000], function($i){$i}))"
    assert engine(text) == "2000"
    monkeypatch.setattr(values, "SECONDS_MAX", -1.0)
    assert engine(text) == "U1001"


def test_the_library_has_as_many_steps_as_closures_have() -> None:
    text = "$map([1..9000], function($i)<n:n>{$i + 1 + 1 + 1 + 1 + 1})"
    with pytest.raises(JsonataError, match="75,000 steps"):
        compile_expression(text).evaluate({}, MOMENT)


def test_a_variable_behind_many_scopes_is_left_to_the_library() -> None:
    text = "($o := 1; " + "($a := 1; " * 60 + "$o" + ")" * 61
    assert not compile_expression(text).is_native
    assert at_the_door(text) == alone(text) == "1"


def test_both_engines_together_have_one_time_for_regular_expressions() -> None:
    tree = fallback.parse('$contains($pad("b", -16, "a"), /(?:(?:a|aa)+)+$/)')
    run = EvaluationRun({})
    assert fallback.evaluate(tree, run, MOMENT) is False
    run.regex_seconds_left = 1e-6
    assert shown(lambda: fallback.evaluate(tree, run, MOMENT)) == "U1001"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "$a",
            "$a.b",
            "$a.b.c",
            "$a.b.missing",
            "$list",
            "$list.b",
            "$lists.b",
            "$lists",
            "$none",
        ),
        *("$missing", "$missing.b", "$a.and", "$a.in", "$a.true", "$a.function", "$sum", "$sum.b"),
        *("$number.b", "$a .b", "$a.`b`", "$", "$$", "$$.a", "$a.$b", "$a.b[0]", "$_1.b"),
    ],
)
def test_a_lookup_that_no_parser_reads_means_what_the_parser_reads(text: str) -> None:
    """A missing name, a word of the language or a built-in function must not change the meaning."""
    given: dict[str, Any] = {
        "a": {"b": {"c": [1]}, "and": 1, "in": [2], "true": 3, "function": 4},
        "list": [{"b": 1}, {"b": 2}, 3],
        "lists": [[{"b": 1}]],
        "none": None,
        "_1": {"b": 0},
        "number": {"b": 5},
        "$": {"a": 6},
    }

    def result(evaluate: Callable[[], Any]) -> Any:
        try:
            return evaluate()
        except JsonataError as error:
            return error.code

    def parsed() -> Any:
        tree = fallback.parse(text)
        return fallback.evaluate(tree, EvaluationRun(given), MOMENT)

    assert result(lambda: compile_expression(text).evaluate(given, MOMENT)) == result(parsed)
    assert result(lambda: is_lookup(fallback.parse(text))) == result(
        lambda: compile_expression(text).is_lookup
    )


def test_the_built_in_functions_have_the_names_of_the_dialect() -> None:
    assert fallback.FUNCTION_NAMES == BUILT_INS
