import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { BootProblem } from "../../base/errors/boot.ts";
import type { BootRule } from "../../base/errors/boot-rule.ts";
import type { AnySchema, SchemaOutput, TypedSchema } from "../../base/types/schema.ts";
import type { ReceivedEvent } from "../../parts/messages/received-event.ts";
import type { Awaitable } from "./handler.ts";
import type { PipelineContext } from "./pipeline-context.ts";
import {
  aFunction,
  aSchema,
  type Declaring,
  knownOptions,
  named,
  problemsOf,
  type Requirement,
  type Requirements,
  required,
  requireOptions,
  requireValue,
  twoWords,
} from "./requirements.ts";

/** Options of `r.receive`. `Detail` is the output of the `input` schema. */
export interface ReceiveOptions<Input extends AnySchema, Detail = SchemaOutput<Input>> {
  /** Exact sender of the event: `aws.s3`. Any source that does not start with `aws.` may be forged. */
  readonly source: string;
  /** Type of the event, exactly: `Object Created`. */
  readonly detailType: string;
  /** Name of the event bus. Default `default`, to which AWS services send. */
  readonly bus?: string;
  /** Any Standard Schema for the event's `detail`. An event that does not match is a dead letter. */
  readonly input: Input | TypedSchema<unknown, Detail>;
  /**
   * Returns the ID under which an event runs once, for at least a day. Default: `event.id`, which
   * EventBridge gives.
   */
  readonly id?: (event: NoInfer<ReceivedEvent<Detail>>) => string;
  /**
   * Returns the tenant of an event. An event whose tenant is `undefined` does not run. Default: the
   * handler runs without a tenant, and not as the system.
   */
  readonly tenant?: (event: NoInfer<ReceivedEvent<Detail>>) => Awaitable<string | undefined>;
  /** Processes an event. If it throws, the queue redelivers the event. */
  readonly handler: (
    ctx: PipelineContext,
    event: NoInfer<ReceivedEvent<Detail>>,
  ) => Awaitable<unknown>;
}

export interface ReceiverDeclaration extends Pick<ReceivedEvent, "source" | "detailType"> {
  readonly feature: string;
  /** Full name, `<feature>.<entity>.<event name>`. */
  readonly name: string;
  readonly bus: string;
  readonly input: StandardSchemaV1;
  readonly id?: ((event: ReceivedEvent) => string) | undefined;
  readonly tenant?: ((event: ReceivedEvent) => Awaitable<string | undefined>) | undefined;
  readonly run: (ctx: PipelineContext, event: ReceivedEvent) => unknown;
}

function matching(form: RegExp, rule: BootRule, fix: string): Requirement {
  return { accepts: (value) => typeof value === "string" && form.test(value), rule, fix };
}

const requirements: Requirements = {
  source: required(matching(/^[!-~]{1,256}$/, "receiver-source", 'for example "aws.s3"')),
  detailType: required(matching(/^[ -~]{1,128}$/, "receiver-type", 'for example "Object Created"')),
  bus: matching(/^[\w./-]{1,256}$/, "receiver-bus", "pass the name of a bus, not its ARN"),
  input: required(aSchema),
  id: aFunction("pass (event) => event.detail.id"),
  tenant: aFunction("pass (event) => event.detail.account"),
  handler: required(aFunction("pass async (ctx, event) => ...")),
};

export function receiver(
  { feature, report }: Declaring,
  name: string,
  options: unknown,
): ReceiverDeclaration {
  const key = `${feature}.${named(name)}`;
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(requirements), report);
  requireValue("name", name, twoWords("receiver-name", "event name", "upload.stored"), problem);
  requireOptions(given, requirements, problem);
  // Safe cast: wrong types are reported, and a server with problems is never built.
  const {
    handler: run,
    bus = "default",
    ...members
  } = given as unknown as Omit<ReceiverDeclaration, "run"> & {
    readonly handler: ReceiverDeclaration["run"];
  };
  return { ...members, bus, feature, name: key, run };
}

/** @param own - source of the server's own events. */
export function receiverProblems(
  receivers: Iterable<ReceiverDeclaration>,
  own = "keelson",
): BootProblem[] {
  const buses = new Map<string, string>();
  return [...receivers].flatMap(({ feature, name: key, source, detailType, bus }) => {
    const event = `${source} ${detailType}`;
    const other = buses.get(event) ?? bus;
    buses.set(event, other);
    const problem = (rule: BootRule, message: string, fix: string) => [
      { feature, key, rule, message, fix },
    ];
    if (source === own)
      return problem(
        "receiver-source",
        `\`source\` ${JSON.stringify(own)} is this server's own`,
        "consume its events with r.on",
      );
    if (other === bus) return [];
    const message = `this event is also received from the bus ${JSON.stringify(other)}`;
    return problem("receiver-bus", message, "take one bus, since an event does not name its bus");
  });
}
