/** Why a sentence has no row. */
export const reasons = {
  open: "the specification leaves it open, so nothing can contradict it",
  advice: "it advises authors or describes the document; no program does it",
  excluded: "it says what is not promised",
} as const;

/** A sentence of the specification that no row proves. */
export interface NotYet {
  readonly section: string;
  /** As the specification has it; what rows prove is left out as `…`. */
  readonly sentence: string;
  readonly why: keyof typeof reasons;
}

/** Every sentence without a row. */
export const notYet: readonly NotYet[] = [
  {
    section: "0",
    sentence:
      "This single document covers all nine parts for the framework's cross-cutting concerns: the layered configuration system, structured logging, typed errors, request context and cancellation, graceful shutdown, and idempotency and event deduplication. Feature code reaches these through a context object (`ctx`).",
    why: "advice",
  },
  { section: "1", sentence: "The service is a server application framework.", why: "advice" },
  {
    section: "1",
    sentence:
      "The framework does these automatically. Feature code only calls `ctx.log`, throws typed errors, passes a `requestId` with writes, and reads config through `ctx.config`.",
    why: "advice",
  },
  { section: "2.1", sentence: "Storage layout of config rows: not shown.", why: "open" },
  {
    section: "2.2",
    sentence: "`getWithSource` is for support and debugging, not for hot-path handlers.",
    why: "advice",
  },
  {
    section: "2.2",
    sentence: "Behavior of `resolveConfigOrParam` when the parameter is absent: not shown.",
    why: "open",
  },
  {
    section: "2.3",
    sentence:
      "Hardcoded | nobody | constant in the module; for security bounds (protocol conformance, header size limits, storage-key structure)",
    why: "advice",
  },
  {
    section: "2.3",
    sentence:
      "Feature option | app developer at build time | property on a field or feature factory, e.g. `maxSize`, `accept` on an image field",
    why: "advice",
  },
  { section: "2.3", sentence: "… only for UX preferences, never business limits", why: "advice" },
  {
    section: "2.3",
    sentence:
      "Decision rules for a new variable: … If the value cannot vary, it is a hardcoded constant.",
    why: "advice",
  },
  {
    section: "2.3",
    sentence:
      "Otherwise choose the level by who changes it (table above). When in doubt, use tenant config.",
    why: "advice",
  },
  { section: "2.6", sentence: "Two context mechanisms exist.", why: "advice" },
  { section: "2.6", sentence: "Format of a generated request ID: not shown.", why: "open" },
  { section: "3.1", sentence: "Feature code does nothing for shutdown.", why: "advice" },
  { section: "3.1", sentence: "State names other than draining: not shown.", why: "open" },
  { section: "3.3", sentence: "The order is in section 4.1 rule 2.", why: "advice" },
  { section: "4.2", sentence: "Response body and status: not shown.", why: "open" },
  { section: "4.3", sentence: "Success status and body: not shown.", why: "open" },
  {
    section: "4.5.3",
    sentence:
      "Guideline: add a check when a handler spends over 100 ms in a loop. Otherwise ignore it.",
    why: "advice",
  },
  {
    section: "4.5.5",
    sentence:
      "Out of scope: cancelling a database query already running; cancellation of job runner or projection applies. A pre-flight abort check before each query is planned and is not provided.",
    why: "excluded",
  },
  {
    section: "5",
    sentence: "Token format, how tokens are obtained, the header that carries them: not shown.",
    why: "open",
  },
  { section: "6.8", sentence: "Other event type names: not shown.", why: "open" },
  {
    section: "7.5",
    sentence:
      "Error code strings for 403, 409, custom status and 500, and log level of `PipelineError`: not shown.",
    why: "open",
  },
  { section: "8", sentence: "Loop check guideline | 100 ms | `ctx.signal` checks", why: "advice" },
  { section: "8", sentence: "Rate limits and request size limits: not shown.", why: "open" },
  {
    section: "9",
    sentence: "Versioning scheme, compatibility rules and deprecation policy: not shown.",
    why: "open",
  },
];
