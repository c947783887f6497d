import type { StandardSchemaV1 } from "@standard-schema/spec";

/**
 * Any Standard Schema. Only the start of a server checks what `~standard` contains, which saves a
 * fifth of the type instantiations.
 */
export interface AnySchema {
  readonly "~standard": unknown;
}

/**
 * A schema whose types are inferred from zod's own member, because that takes fewer type
 * instantiations. For schemas without it, use {@link SchemaInput} and {@link SchemaOutput}.
 */
export interface TypedSchema<Input, Output> extends AnySchema {
  readonly _zod?: { readonly input: Input; readonly output: Output };
}

/** Input of a schema of any library. */
export type SchemaInput<Schema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<Schema>
  : unknown;

/** Output of a schema of any library. */
export type SchemaOutput<Schema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : unknown;
