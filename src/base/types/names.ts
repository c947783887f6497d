import type { StandardSchemaV1 } from "@standard-schema/spec";

/** Types of a query, derived from its schemas. */
export interface Query<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** Result of the `output` schema, for clients and `ctx.query`. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * Queries that `ctx.query` can call, by full name. A feature adds its queries:
 *
 * @example
 * declare module "keelson" {
 *   interface Queries { "billing.plan.current": Query<typeof planInput, typeof planOutput> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Queries {}

/** Types of a write, derived from its schemas. */
export interface Write<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  /** Value that the `input` schema accepts. */
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** Result of the `input` schema, for the handler and the hooks. */
  readonly accepted: StandardSchemaV1.InferOutput<Input>;
  /** Result of the `output` schema, for clients and hooks. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * Writes to which `r.hook` can add hooks, by full name. A feature adds its writes:
 *
 * @example
 * declare module "keelson" {
 *   interface Writes { "files.file.create": Write<typeof newFile, typeof file> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Writes {}

/**
 * Events that `ctx.publish` sends and `r.on` receives, by type, with the output types of their
 * schemas. A feature adds its events:
 *
 * @example
 * declare module "keelson" {
 *   interface Events { "file.created": z.output<typeof fileCreated> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Events {}

/**
 * Jobs that `ctx.enqueue` accepts, by full name, with their payloads. A feature adds its jobs:
 *
 * @example
 * declare module "keelson" {
 *   interface Jobs { "files.file.scan": { id: string } }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Jobs {}

/**
 * Channels of `ctx.delivery.send`, by name, with the types of their messages. A feature adds its
 * channels:
 *
 * @example
 * declare module "keelson" {
 *   interface Channels { sms: { to: string; text: string } }
 * }
 */
export interface Channels {
  /** Channel that logs each message as `delivery.message`. */
  readonly log: Readonly<Record<string, unknown>>;
  /** Channel that sends a JSON body to a URL, signed with the tenant's secret. */
  readonly webhook: { readonly url: string; readonly body: Readonly<Record<string, unknown>> };
}
