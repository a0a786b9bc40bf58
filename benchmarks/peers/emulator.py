"""moto's and LocalStack's interpreters, which are of one descent: `emulator.py PACKAGE`.

Each execution goes through the peer's own `SyncExecutionWorker`, without its HTTP and its threads:
what it does for an execution, which includes parsing the definition.
"""

from __future__ import annotations

import datetime as dt
import importlib
import json
import sys
from typing import Any

from workloads import serve

ROLE = "arn:aws:iam::123456789012:role/machine"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:machine"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:machine:execution"


class _Ended:
    """The peer reports the end to a subscriber; this run has none."""

    def terminated(self) -> None:
        pass


class Emulator:
    def __init__(self, package: str) -> None:
        worker = importlib.import_module(f"{package}.backend.execution_worker")
        self.worker = worker.SyncExecutionWorker
        self.ended = importlib.import_module(f"{package}.asl.eval.program_state").ProgramEnded
        self.details = importlib.import_module(f"{package}.asl.eval.evaluation_details")

    def run(self, definition: str, data: Any) -> Any:
        details = self.details
        evaluation = details.EvaluationDetails(
            aws_execution_details=details.AWSExecutionDetails(
                account="123456789012", region="us-east-1", role_arn=ROLE
            ),
            execution_details=details.ExecutionDetails(
                arn=EXECUTION,
                name="execution",
                role_arn=ROLE,
                inpt=data,
                start_time=dt.datetime.now(tz=dt.UTC).isoformat(),
            ),
            state_machine_details=details.StateMachineDetails(
                arn=MACHINE, name="machine", typ="STANDARD", definition=definition
            ),
        )
        worker = self.worker(
            evaluation_details=evaluation,
            exec_comm=_Ended(),
            cloud_watch_logging_session=None,
            activity_store={},
        )
        worker.start()
        state = worker.env.program_state()
        if type(state) is not self.ended:
            raise RuntimeError(json.dumps(getattr(state, "error", None), default=str))
        return worker.env.states.get_input()


if __name__ == "__main__":
    serve(Emulator(sys.argv[1]).run)
