import type { StandardSchemaV1 } from "@standard-schema/spec";

/** The input and output types of a query, from its schemas. */
export interface Query<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** The result of the `output` schema, which is sent to clients and returned by `ctx.query`. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * The queries that `ctx.query` accepts, by full name. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Queries { "billing.plan.current": Query<typeof planInput, typeof planOutput> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Queries {}

/** The types of a write, from its schemas. */
export interface Write<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  /** The value that the `input` schema accepts. */
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** The result of the `input` schema, passed to the handler and the hooks. */
  readonly accepted: StandardSchemaV1.InferOutput<Input>;
  /** The result of the `output` schema, sent to clients and passed to hooks. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * The writes that `r.hook` accepts, by full name. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Writes { "files.file.create": Write<typeof newFile, typeof file> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Writes {}

/**
 * The events that `ctx.publish` and `r.on` accept, by type, with the output types of their schemas.
 * A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Events { "file.created": z.output<typeof fileCreated> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Events {}

/**
 * The jobs that `ctx.enqueue` accepts, by full name, with their payloads. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Jobs { "files.file.scan": { id: string } }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Jobs {}

/**
 * The channels that `ctx.delivery.send` accepts, by name, with their message types. A feature adds
 * its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Channels { sms: { to: string; text: string } }
 * }
 */
export interface Channels {
  /** Logs messages as `delivery.message`. */
  readonly log: Readonly<Record<string, unknown>>;
  /** Sends a JSON body to a URL, signed with the tenant's secret. */
  readonly webhook: { readonly url: string; readonly body: Readonly<Record<string, unknown>> };
}
