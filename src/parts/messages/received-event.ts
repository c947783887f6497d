import { PermanentError } from "../../base/errors/errors.ts";
import { exceededBound } from "../http/json-bounds.ts";
import { type Fields, idOf, objectOf, recordOf } from "./envelope.ts";
import { type Waited, waitedOf } from "./waited.ts";

/** Event of another sender, as EventBridge puts it into a queue. */
export interface ReceivedEvent<Detail = unknown> {
  /** EventBridge's ID of the event. */
  readonly id: string;
  /** For example `aws.s3`. Only a source that starts with `aws.` cannot be forged. */
  readonly source: string;
  /** For example `Object Created`. */
  readonly detailType: string;
  /** Time of the event, as its sender gives it, in ISO 8601. */
  readonly time: string;
  /** AWS account of the sender. */
  readonly account: string;
  readonly region: string;
  /** ARNs of the resources that the event is about. */
  readonly resources: readonly string[];
  readonly detail: Detail;
}

export interface ReadReceived {
  readonly event: ReceivedEvent;
  /** Counts of a message that has waited for a limit of its receiver. */
  readonly waited: Waited;
}

const bounds = Object.freeze({ depth: 64, values: 262_144, members: 10_000 });
const longest = Object.freeze({ text: 512, resources: 1_000 });

/**
 * Reads an event from the body of its message. `keelson` as a source, or an envelope as the detail,
 * has no meaning here.
 * @throws PermanentError with the problem, which a retry would not fix.
 */
export function readReceived(text: string): ReadReceived {
  const exceeded = text.length > bounds.depth ? exceededBound(text, bounds) : undefined;
  if (exceeded !== undefined)
    throw new PermanentError(`the event has too much JSON: ${exceeded} beyond ${bounds[exceeded]}`);
  const event = objectOf(text, "the event");
  return {
    waited: waitedOf(event),
    event: {
      id: idOf(event, "id"),
      source: textOf(event, "source"),
      detailType: textOf(event, "detail-type"),
      time: textOf(event, "time", ""),
      account: textOf(event, "account", ""),
      region: textOf(event, "region", ""),
      resources: resourcesOf(event),
      detail: recordOf(event["detail"], "its detail"),
    },
  };
}

function textOf(event: Fields, member: string, otherwise?: string): string {
  const { [member]: value = otherwise } = event;
  if (typeof value === "string" && value.length <= longest.text) return value;
  throw new PermanentError(`its ${member} is not a string of at most ${longest.text} characters`);
}

function resourcesOf({ resources = [] }: Fields): readonly string[] {
  const isShort = Array.isArray(resources) && resources.length <= longest.resources;
  if (isShort && resources.every((one) => typeof one === "string")) return resources;
  throw new PermanentError(`its resources are not a list of at most ${longest.resources} strings`);
}

/** Name of an event in logs, spans and traces. */
export function receivedName({
  source,
  detailType,
}: Pick<ReceivedEvent, "source" | "detailType">): string {
  return `${source} ${detailType}`;
}
