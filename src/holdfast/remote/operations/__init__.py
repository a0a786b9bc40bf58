"""The calls of the HTTP API, each as a generator that yields requests and waits: see `requests`."""
