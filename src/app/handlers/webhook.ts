import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isRecord, unknownOptions } from "../../base/errors/option-table.ts";
import { access, type TenantUser } from "../../base/identity/access.ts";
import type { BodyLimits } from "../../parts/http/limits.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import {
  isOfTenant,
  isScheme,
  type WebhookScheme,
  type WebhookVerifier,
} from "../../parts/webhooks/scheme.ts";
import { handler } from "./declare.ts";
import type {
  Awaitable,
  HandlerDeclaration,
  HandlerOptions,
  WebhookDeclaration,
} from "./handler.ts";
import type { PipelineContext } from "./pipeline-context.ts";
import {
  aFunction,
  type Declaring,
  knownOptions,
  problemsOf,
  requireOptions,
} from "./requirements.ts";

/**
 * Options of a webhook, a write whose caller is a sender that signs. `Event` is the output type of
 * the `input` schema. Other type parameters as in `WriteOptions`.
 */
export type IncomingWebhookOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Name extends string = string,
  Sent = Output,
  Event = StandardSchemaV1.InferOutput<Input>,
> = Omit<
  HandlerOptions<Input, Output, Result, PipelineContext<TenantUser>, Name, Sent>,
  "errors"
> & {
  /** Method and pattern: `POST /hooks/stripe`. */
  readonly route: string;
  /** Format of the body, the whole input. Default `json`. */
  readonly body?: BodyKind;
  /** Limits in place of the server's. Default: the server's. */
  readonly limits?: BodyLimits;
  /**
   * Verifies each delivery, before it is parsed: a preset of `keelson/webhooks`, or a function. A
   * failure is a 401 `signature_invalid`.
   */
  readonly verify: WebhookScheme | WebhookVerifier;
  /**
   * Returns the ID of an event, from its signed body. The webhook runs once for each ID and tenant
   * within 30 days, and a repeat gets the first response. Default: the ID that the scheme signs,
   * otherwise the SHA-256 of the body.
   */
  readonly id?: (event: Event) => string;
  /**
   * Tenant of an event, or the parameter of the path that has it, which only a secret of the tenant
   * protects from being changed. An event whose tenant is `undefined` gets a 204 and does not run.
   */
  readonly tenant:
    | ((event: Event) => Awaitable<string | undefined>)
    | {
        /** Name of the path parameter. */
        readonly param: string;
      };
};

const known = "route body limits input output status rateLimit handler verify id tenant".split(" ");

export function webhook(by: Declaring, name: string, options: unknown): HandlerDeclaration {
  const key = `${by.feature}.${name}`;
  const given = knownOptions(key, options, known, by.report);
  const {
    verify,
    id,
    tenant,
    route = "",
    body,
    limits,
    input,
    output,
    status,
    rateLimit,
    handler: run,
  } = given;
  const write = { route, body, limits, input, output, status, rateLimit, handler: run };
  const declared = handler("write", by, name, { ...write, access: access.everyone, once: false });
  const { param } = Object(tenant);
  if (isRecord(tenant)) unknownOptions(`${key}.tenant`, tenant, ["param"], by.report);
  const isInPath = String(route).split("/").includes(`:${param}`);
  requireOptions(
    given,
    {
      verify: {
        accepts: () =>
          isScheme(verify) ? verify.problem === undefined : typeof verify === "function",
        rule: "webhook-verify",
        wrong: isScheme(verify)
          ? `has a wrong preset: ${verify.problem}`
          : "is neither a preset nor a function",
        fix: "pass stripe({ secret }) of keelson/webhooks, or a function",
        isRequired: true,
      },
      id: { ...aFunction("pass (event) => event.id"), rule: "webhook-id" },
      tenant: {
        accepts: () => isInPath || (typeof tenant === "function" && !isOfTenant(verify)),
        rule: "webhook-tenant",
        wrong:
          isOfTenant(verify) && typeof tenant === "function"
            ? "is read from the body, but the secret is the tenant's own, so the tenant has to be in the path"
            : "is neither a function nor a parameter of the route",
        fix: isOfTenant(verify)
          ? 'pass { param: "tenant" }, with :tenant in the route'
          : 'pass (event) => event.account, or { param: "tenant" }',
        isRequired: true,
      },
    },
    problemsOf(key, by.report),
  );
  // Safe cast: wrong types are reported, and a server with problems is never built.
  return { ...declared, webhook: { verify, id, tenant } as WebhookDeclaration };
}
