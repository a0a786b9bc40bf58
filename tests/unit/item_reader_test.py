"""The source of a distributed Map's items: every kind of file, manifests, listings, refusals."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from holdfast.integrations import item_reader
from holdfast.runtime import item_formats
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.s3_kit import MODIFIED, Bucket, errand


def read(bucket: Bucket, target: str = "s3:getObject", **config: Any) -> Any:
    """Return the items read from the bucket's object `it`, or from all its objects."""
    where = {"Bucket": "b", **({"Key": "it"} if target == "s3:getObject" else {})}
    arguments = {"parameters": where, "config": config}
    result = item_reader.read(errand("read", target, arguments), bucket)
    assert isinstance(result, TaskSucceeded), result
    return result.output


def items(data: str | bytes, **config: Any) -> Any:
    content = data.encode() if isinstance(data, str) else data
    return read(Bucket(it=content), **config)["items"]


def cause(bucket: Bucket, arguments: Any, target: str = "s3:getObject") -> str:
    result = item_reader.read(errand("read", target, arguments), bucket)
    assert isinstance(result, TaskFailed), result
    assert result.error == "States.ItemReaderFailed"
    return str(result.cause)


def cause_of(data: str | bytes, **config: Any) -> str:
    content = data.encode() if isinstance(data, str) else data
    where = {"Bucket": "b", "Key": "it"}
    return cause(Bucket(it=content), {"parameters": where, "config": config})


# -- CSV -------------------------------------------------------------------------------------------


def csv_items(data: str, **config: Any) -> Any:
    return items(data, InputType="CSV", **{"CSVHeaderLocation": "FIRST_ROW", **config})


def test_the_first_row_names_the_fields() -> None:
    assert csv_items("a,b\n1,2\n3,4\n") == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_given_headers_name_the_fields_of_every_row() -> None:
    given = {"CSVHeaderLocation": "GIVEN", "CSVHeaders": ["x", "y"]}
    assert csv_items("1,2\n3,4", **given) == [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]


def test_short_rows_are_filled_up_and_long_ones_cut() -> None:
    rows = csv_items("a,b\n1\n1,2,3\n,,,\n  \n")
    assert [list(row.values()) for row in rows] == [["1", ""], ["1", "2"], ["", ""], ["  ", ""]]


def test_empty_lines_are_no_rows() -> None:
    assert csv_items("a\n\n1\r\n\r\n2") == [{"a": "1"}, {"a": "2"}]


def test_quoted_fields_hold_delimiters_newlines_and_doubled_quotes() -> None:
    assert csv_items('a,b\n"1,\n2","say ""hi"""\n') == [{"a": "1,\n2", "b": 'say "hi"'}]


def test_doubled_quotation_marks_stand_for_one_without_quotes_around_the_field_too() -> None:
    assert csv_items('a,b\n{""k"":""v""},"x""y"\n"",""""\n') == [
        {"a": '{"k":"v"}', "b": 'x"y'},
        {"a": "", "b": '"'},
    ]
    assert csv_items('a|b\n1""2|"3""|4"', CSVDelimiter="PIPE") == [{"a": '1"2', "b": '3"|4'}]


def test_a_backslash_takes_the_first_of_three_quotation_marks_and_begins_no_field() -> None:
    assert csv_items('a,b\n\\"""k"",\\,"y""z\n') == [{"a": '""k"', "b": ',"y"z'}]


def test_single_quotes_mean_nothing() -> None:
    assert csv_items("a,b\n'1,2'") == [{"a": "'1", "b": "2'"}]


@pytest.mark.parametrize(
    ("written", "field"), [(r"1\,2", "1,2"), (r"C:\\x", r"C:\x"), (r"a\bc", "abc")]
)
def test_a_backslash_escapes_the_next_character(written: str, field: str) -> None:
    assert csv_items(f"a\n{written}\n") == [{"a": field}]


@pytest.mark.parametrize(
    ("name", "delimiter"), [("PIPE", "|"), ("SEMICOLON", ";"), ("SPACE", " "), ("TAB", "\t")]
)
def test_fields_can_be_delimited_by_other_characters(name: str, delimiter: str) -> None:
    data = f"a{delimiter}b\n1{delimiter}2,3"
    assert csv_items(data, CSVDelimiter=name) == [{"a": "1", "b": "2,3"}]


def test_a_byte_order_mark_is_no_part_of_the_first_header() -> None:
    assert csv_items("\ufeffa\n1") == [{"a": "1"}]


@pytest.mark.parametrize(
    "config",
    [
        {"CSVHeaderLocation": "FIRST_ROW"},
        {"CSVHeaderLocation": "GIVEN", "CSVHeaders": ["a", "a"]},
    ],
)
def test_headers_cannot_be_the_same(config: Any) -> None:
    refused = cause_of("a,a\n1,2", InputType="CSV", **config)
    assert refused == "CSV headers cannot contain duplicates."


def test_a_field_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_formats, "READER_ITEM_BYTES_MAX", 100)
    assert cause_of("a\n" + "x" * 101, InputType="CSV").startswith("Line 2 of the object")


# -- JSON ------------------------------------------------------------------------------------------


def test_a_list_is_its_items() -> None:
    assert items('[1, "a", {"b": null}]', InputType="JSON") == [1, "a", {"b": None}]


@pytest.mark.parametrize("data", ['{"a": 1}', '"text"', "1", "null"])
def test_a_document_that_is_no_list_cannot_be_mapped_over(data: str) -> None:
    assert cause_of(data, InputType="JSON") == "Attempting to map over non-iterable node."


def test_a_pointer_selects_a_list_or_an_object() -> None:
    data = json.dumps({"x": [{"y/z": [1, 2]}], "o": {"k": "v"}})
    assert items(data, InputType="JSON", ItemsPointer="/x/0/y~1z") == [1, 2]
    assert items(data, InputType="JSON", ItemsPointer="/o") == {"k": "v"}


@pytest.mark.parametrize("pointer", ["/x/7", "/nowhere", "/x/0/y"])
def test_a_pointer_to_nothing_selects_nothing(pointer: str) -> None:
    refused = cause_of('{"x": ["y"]}', InputType="JSON", ItemsPointer=pointer)
    assert refused == "Attempting to map over non-iterable node."


def test_json_lines_are_an_item_each() -> None:
    assert items('{"a": 1}\n\n[2]\r\n"\u2028"', InputType="JSONL") == [{"a": 1}, [2], "\u2028"]


def test_text_that_is_no_json_is_refused() -> None:
    assert cause_of("[1,", InputType="JSON").startswith("The object is not valid JSON: ")
    assert cause_of("[1\n", InputType="JSONL").startswith("The object is not valid JSON: ")


@pytest.mark.parametrize("data", ['["\\ud800"]', "[NaN]", "[1e999]", "[" * 900 + "]" * 900])
def test_json_that_could_not_be_kept_is_refused(data: str) -> None:
    assert cause_of(data, InputType="JSON").startswith("The object cannot be kept: ")


# -- how many, how large ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "count"), [(2, 2), ("2", 2), (2.0, 2), (0, 3), (100_000_000, 3), (3, 3)]
)
def test_no_more_items_are_read_than_are_wanted(most: Any, count: int) -> None:
    assert len(items("[1, 2, 3]", InputType="JSON", MaxItems=most)) == count


def test_a_negative_number_of_items_is_refused() -> None:
    refused = cause_of("[]", InputType="JSON", MaxItems=-1)
    assert refused == "field MaxItems must be positive"


def test_rows_after_the_last_that_is_wanted_are_not_looked_at() -> None:
    assert items('{"a": 1}\nnot json', InputType="JSONL", MaxItems=1) == [{"a": 1}]


def test_the_fields_of_an_object_are_counted_too() -> None:
    data = '{"o": {"a": 1, "b": 2}}'
    found = read(Bucket(it=data.encode()), InputType="JSON", ItemsPointer="/o", MaxItems=1)
    assert found == {"items": {"a": 1}, "sources": [["S3://b/it", 1]]}


def test_more_items_than_a_map_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_reader, "READER_ITEMS_MAX", 2)
    assert cause_of("[1, 2, 3]", InputType="JSON") == "There are more than 2 items."
    assert items("[1, 2, 3]", InputType="JSON", MaxItems=2) == [1, 2]


def test_objects_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_formats, "READER_BYTES_MAX", 20)
    monkeypatch.setattr(item_reader, "READER_BYTES_MAX", 20)
    refused = "The object is larger than 20 bytes."
    assert cause_of(json.dumps(list(range(20))), InputType="JSON") == refused
    assert cause_of(gzip.compress(b"[" + b" " * 1_000 + b"]"), InputType="JSON") == refused


# -- compression -----------------------------------------------------------------------------------


def test_compressed_files_are_read() -> None:
    assert items(gzip.compress(b"a\n1\n"), InputType="CSV") == [{"a": "1"}]


def test_a_compressed_file_that_is_torn_is_refused() -> None:
    torn = gzip.compress(b"[1, 2, 3]")[:-10]
    assert cause_of(torn, InputType="JSON").startswith("The object cannot be decompressed: ")


def test_an_unreadable_file_is_reported() -> None:
    assert "ZSTD" in cause_of(b"\x28\xb5\x2f\xfd...", InputType="JSON")
    assert cause_of(b"PAR1", InputType="PARQUET") == "The input type PARQUET cannot be read."
    assert cause_of(b"\xff\xfe[]", InputType="JSON") == "The object is not encoded in UTF-8."


# -- listings --------------------------------------------------------------------------------------


def test_a_listing_has_an_item_for_every_object_on_every_page() -> None:
    bucket = Bucket(**{f"o{n}": b"x" * n for n in range(5)})
    found = read(bucket, "s3:listObjectsV2")
    assert [item["Key"] for item in found["items"]] == ["o0", "o1", "o2", "o3", "o4"]
    assert found["sources"] == [["S3://b", 5]]
    assert found["items"][1] == {
        "Etag": '"e"',
        "Key": "o1",
        "LastModified": MODIFIED.timestamp(),
        "Size": 1,
        "StorageClass": "STANDARD",
    }


def test_only_pages_that_are_wanted_are_listed() -> None:
    bucket = Bucket(**{f"o{n}": b"x" for n in range(5)})
    assert len(read(bucket, "s3:listObjectsV2", MaxItems=2)["items"]) == 2
    assert len(bucket.requests) == 1


def test_a_listing_can_be_loaded_and_flattened() -> None:
    bucket = Bucket(d__1=b"[1, 2]", d__2=b"", d__3=b"[3]", e=b"[4]")
    config = {"InputType": "JSON", "Transformation": "LOAD_AND_FLATTEN"}
    arguments = {"parameters": {"Bucket": "b", "Prefix": "d/"}, "config": config}
    result = item_reader.read(errand("read", "s3:listObjectsV2", arguments), bucket)
    assert result == TaskSucceeded(
        {"items": [1, 2, 3], "sources": [["S3://b/d/1", 2], ["S3://b/d/3", 1]]}
    )


# -- manifests -------------------------------------------------------------------------------------


def inventory(**changes: Any) -> bytes:
    manifest = {
        "destinationBucket": "arn:aws:s3:::b",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, Size",
        "files": [{"key": "data1"}, {"key": "data2"}],
        **changes,
    }
    return json.dumps(manifest).encode()


@pytest.mark.parametrize("config", [{"InputType": "MANIFEST"}, {"ManifestType": "S3_INVENTORY"}])
def test_an_inventory_has_an_item_for_every_row_of_its_files(config: Any) -> None:
    rows = gzip.compress(b'"src","a","1"\n"src","b","2"\n')
    bucket = Bucket(it=inventory(), data1=rows, data2=gzip.compress(b'"src","c","3"\n'))
    found = read(bucket, **config)
    assert found["items"][0] == {"Bucket": "src", "Key": "a", "Size": "1"}
    assert [item["Key"] for item in found["items"]] == ["a", "b", "c"]


@pytest.mark.parametrize("data", [b"[]", b"x", b'{"fileFormat": "CSV"}'])
def test_a_file_that_is_no_inventory_is_refused(data: bytes) -> None:
    assert "not the manifest" in cause_of(data, InputType="MANIFEST")


def test_an_inventory_in_another_format_is_refused() -> None:
    assert "format ORC" in cause_of(inventory(fileFormat="ORC"), InputType="MANIFEST")


def test_athenas_manifest_names_files_that_are_read() -> None:
    bucket = Bucket(it=b's3://b/x/1\n"s3://b/x/2"\n', x__1=b'{"n": 1}\n', x__2=b'{"n": 2}\n')
    found = read(bucket, ManifestType="ATHENA_DATA", InputType="JSONL")
    assert found == {
        "items": [{"n": 1}, {"n": 2}],
        "sources": [["S3://b/x/1", 1], ["S3://b/x/2", 1]],
    }


# -- calls -----------------------------------------------------------------------------------------


def test_version_and_owner_go_with_the_call_and_nothing_else() -> None:
    bucket = Bucket(it=b"[]")
    where = {"Bucket": "b", "Key": "it", "VersionId": "v", "ExpectedBucketOwner": "o"}
    arguments = {"parameters": {**where, "Other": 1}, "config": {"InputType": "JSON"}}
    item_reader.read(errand("read", "s3:getObject", arguments), bucket)
    assert bucket.requests == [where]


def test_a_refusal_of_s3_is_the_cause() -> None:
    where = {"parameters": {"Bucket": "b", "Key": "none"}, "config": {"InputType": "JSON"}}
    assert cause(Bucket(), where) == (
        "The specified key does not exist. (Service: Amazon S3; Status Code: 404; "
        "Error Code: NoSuchKey; Request ID: R; S3 Extended Request ID: H; Proxy: null)"
    )
    elsewhere = {"parameters": {"Bucket": "c"}, "config": {}}
    assert "NoSuchBucket" in cause(Bucket(), elsewhere, "s3:listObjectsV2")


def test_a_reader_without_a_bucket_is_refused() -> None:
    refused = cause(Bucket(), {"parameters": {"Key": "it"}, "config": {"InputType": "JSON"}})
    assert refused == "The field 'Bucket' is required but was missing"
    wrong = cause(Bucket(), {"parameters": {"Bucket": 3, "Key": "it"}, "config": {}})
    assert wrong == "The value for the field 'Bucket' must be a STRING"
