import type { StandardSchemaV1 } from "@standard-schema/spec";

/** Types of a query, from its schemas. */
export interface Query<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** Result of the `output` schema, for clients and `ctx.query`. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * Queries of `ctx.query`, by full name. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Queries { "billing.plan.current": Query<typeof planInput, typeof planOutput> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Queries {}

/** Types of a write, from its schemas. */
export interface Write<Input extends StandardSchemaV1, Output extends StandardSchemaV1> {
  /** Value that the `input` schema accepts. */
  readonly input: StandardSchemaV1.InferInput<Input>;
  /** Result of the `input` schema, for the handler and the hooks. */
  readonly accepted: StandardSchemaV1.InferOutput<Input>;
  /** Result of the `output` schema, for clients and hooks. */
  readonly output: StandardSchemaV1.InferOutput<Output>;
}

/**
 * Writes of `r.hook`, by full name. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Writes { "files.file.create": Write<typeof newFile, typeof file> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Writes {}

/**
 * Events of `ctx.publish` and `r.on`, by type, with the output types of their schemas. A feature
 * adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Events { "file.created": z.output<typeof fileCreated> }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Events {}

/**
 * Jobs of `ctx.enqueue`, by full name, with their payloads. A feature adds its own:
 *
 * @example
 * declare module "keelson" {
 *   interface Jobs { "files.file.scan": { id: string } }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Jobs {}

/**
 * Channels of `ctx.delivery.send`, by name, with their messages. A feature adds its own:
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
