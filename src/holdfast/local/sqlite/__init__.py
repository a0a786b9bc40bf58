"""The services of one stack in one SQLite file: tables, queues, blobs."""
