import type { HttpApiEvent, HttpApiResult } from "./http-api.ts";
import type { LoadBalancerEvent, LoadBalancerResult } from "./load-balancer.ts";
import type { RestApiEvent, RestApiResult } from "./rest-api.ts";

/** Event that `lambdaHttp` and `lambdaHandler` answer. */
export type LambdaHttpEvent = HttpApiEvent | RestApiEvent | LoadBalancerEvent;

/** Result for an event of this shape. */
export type LambdaHttpResult<Event extends LambdaHttpEvent = LambdaHttpEvent> =
  Event extends HttpApiEvent
    ? HttpApiResult
    : Event extends LoadBalancerEvent
      ? LoadBalancerResult
      : RestApiResult;
