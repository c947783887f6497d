import type { StandardSchemaV1 } from "@standard-schema/spec";

/** The input and output types of a query, from its schemas. */
export interface Query<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** What the `output` schema gives: what is sent, and what `ctx.query` returns. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * The queries that `ctx.query` knows, by full name. A feature adds its own:
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
  /** What the `input` schema takes. */
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** What it makes of that: what the handler and the hooks get. */
  readonly accepted: StandardSchemaV1.InferOutput<Input>;
  /** What the `output` schema gives: what is sent, and what hooks get. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * The writes that `r.hook` knows, by full name. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Writes { "files.file.create": Write<typeof newFile, typeof file> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Writes {}

/**
 * The events that `ctx.publish` and `r.on` know, by type, with the output types of their schemas. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Events { "file.created": z.output<typeof fileCreated> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Events {}

/**
 * The jobs that `ctx.enqueue` knows, by full name, with their payloads. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Jobs { "files.file.scan": { id: string } }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features add to it by declaration merging
export interface Jobs {}

/**
 * The channels that `ctx.delivery.send` knows, by name, with the messages that go through them. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Channels { sms: { to: string; text: string } }
 * }
 */
export interface Channels {
  /** Logs messages, as `delivery.message`. */
  readonly log: Readonly<Record<string, unknown>>;
  /** Sends a JSON body to a URL, signed with the tenant's secret. */
  readonly webhook: { readonly url: string; readonly body: Readonly<Record<string, unknown>> };
}
