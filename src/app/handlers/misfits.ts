import type { Reply } from "../../parts/http/reply.ts";

/** Read-only form of a type, which also accepts literal arrays. keelson never changes a result. */
export type Unwritten<Value> = Value extends (...given: never) => unknown
  ? Value
  : Value extends object
    ? { readonly [Name in keyof Value]: Unwritten<Value[Name]> }
    : Value;

/** Names of the result's members that do not match `Output`, for an error message. */
export type Misfits<Result, Output> = Known<
  MisfitsOf<Result extends Reply<infer Body> ? Body : Result, Output>
>;

type Known<Names extends string> = [Names] extends [never] ? "its type" : Names;

type MisfitsOf<Body, Output> = Body extends Output
  ? never
  : Body extends object
    ? Output extends readonly unknown[]
      ? "its items"
      : Output extends object
        ? MisfittingNames<Body, Output>
        : "its type"
    : "its type";

type MisfittingNames<Body, Output> = {
  [Name in keyof Output]-?: Body extends { readonly [Same in Name]: unknown }
    ? Body[Name] extends Output[Name]
      ? never
      : Shown<Name>
    : Pick<Output, Name> extends Required<Pick<Output, Name>>
      ? Shown<Name>
      : never;
}[keyof Output];

type Shown<Name> = Name extends string | number ? `${Name}` : "its type";
