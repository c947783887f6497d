"""MiniStack as an ASGI app, with one mend: CloudFormation makes a number of a parameter of the type Number, MiniStack keeps
the text that was passed, and a mapping of a queue to a function then fails with each poll."""

from ministack.app import app
from ministack.services import lambda_svc

_limit = lambda_svc._sqs_esm_concurrency


def _limit_of_number(esm, *others):
    scaling = esm.get("ScalingConfig") or {}
    if isinstance(scaling.get("MaximumConcurrency"), str):
        scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
    return _limit(esm, *others)


lambda_svc._sqs_esm_concurrency = _limit_of_number
__all__ = ["app"]
