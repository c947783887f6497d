import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance


# A key that was sent with another request is a conflict of the two, which a document cannot say.
@schemathesis.check
def taken_but_for_reused_keys(ctx, response, case):
    if response.status_code == 422 and b'"idempotency_key_reused"' in response.content:
        return None
    return positive_data_acceptance(ctx, response, case)


# The document offers a token or an API key, and Schemathesis adds the key to the token that it was given.
@schemathesis.hook
def before_call(ctx, case, **kwargs):
    if case.headers is not None:
        case.headers.pop("X-API-Key", None)
