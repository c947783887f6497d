import { markOf } from "../../hosts/lambda-http/bind.ts";
import type { ComparedTemplate } from "./difference.ts";
import { type FrontName, frontNames } from "./fronts.ts";
import { type Members, own, type Resource } from "./template.ts";

export interface Entry {
  readonly name: string;
  readonly exports: Members;
  /** Whether a bundled module has an `index.js` next to it. */
  readonly hasIndex?: boolean | undefined;
}

export interface TemplateFunction {
  readonly id: string;
  readonly module: string;
  readonly name: string;
}

/** The expected front of a template. */
export interface WantedFront {
  readonly front?: FrontName | undefined;
  readonly stream?: boolean;
}

/** A resource that passes requests on. */
interface Caller {
  readonly front: FrontName | undefined;
  readonly called: string;
  readonly canStream: boolean;
  readonly streams: boolean;
  /** The place that names the function. */
  readonly text: string;
}

export const webRevisionType = "AWS::Lambda::WebFunctionRevision";

type Kind = Omit<Caller, "streams" | "text"> & { readonly isStream?: (has: Members) => boolean };

const kinds: Readonly<Record<string, Kind>> = {
  "AWS::ApiGatewayV2::Integration": { front: "http", called: "an HTTP API", canStream: false },
  "AWS::ElasticLoadBalancingV2::TargetGroup": {
    front: undefined,
    called: "a load balancer",
    canStream: false,
  },
  "AWS::ApiGateway::Method": {
    front: "rest",
    called: "a REST API",
    canStream: true,
    isStream: ({ Integration }) => Object(Integration).ResponseTransferMode === "STREAM",
  },
  "AWS::Lambda::Url": {
    front: "url",
    called: "a function URL",
    canStream: true,
    isStream: ({ InvokeMode }) => InvokeMode === "RESPONSE_STREAM",
  },
  "AWS::Lambda::WebFunctionEndpoint": {
    front: "web",
    called: "the endpoint of a Web Function",
    canStream: false,
  },
};

function callersIn({ Resources }: ComparedTemplate): Caller[] {
  return Object.values(Resources).flatMap(({ Type, Properties = {} }: Partial<Resource>) => {
    const kind = own(kinds, String(Type));
    if (kind === undefined) return [];
    const { isStream = () => false, ...caller } = kind;
    return [{ ...caller, streams: isStream(Properties), text: JSON.stringify(Properties) }];
  });
}

/** Lambda reports no failure for a Web Function without `index.js`: its requests fail. */
export function indexMistakes({ Resources }: ComparedTemplate, { hasIndex }: Entry) {
  const isWeb = Object.values(Resources).some(({ Type }) => Type === webRevisionType);
  return isWeb && hasIndex === false
    ? [
        "a Web Function loads index.js, which is missing next to the entry; bundle the module that runs the container as the entry web",
      ]
    : [];
}

/** Compares a template with the front that was asked for. */
export function frontMistakes(template: ComparedTemplate, { front, stream }: WantedFront) {
  const callers = callersIn(template);
  const has = frontNames.filter((name) => callers.some((one) => one.front === name));
  const mistakes: string[] = [];
  if (front !== undefined && !has.includes(front))
    mistakes.push(
      `--front ${front} is given, and the template's front is ${has.join(" and ") || "none"}; write it with --front ${front}, or give --check the front that it has`,
    );
  if (stream && !callers.some(({ streams }) => streams))
    mistakes.push("--stream is given, and nothing in the template streams; write it with --stream");
  return mistakes;
}

/** Functions that stream behind a front that does not, or the other way round. */
export function streamMistakes(
  template: ComparedTemplate,
  functions: readonly TemplateFunction[],
  { name: module, exports }: Entry,
) {
  const callers = callersIn(template);
  return functions.flatMap(({ id, module: its, name }) => {
    const exported = its === module ? own(exports, name) : undefined;
    const mark = typeof exported === "function" ? markOf(exported) : undefined;
    if (mark === undefined) return []; // the application's own, or of another module
    const isStreaming = mark.stream === true;
    const references = [`"${id}"`, `"${id}.`, `{${id}.`];
    const caller = callers.find(
      ({ streams, text }) =>
        streams !== isStreaming && references.some((one) => text.includes(one)),
    );
    return caller === undefined ? [] : [mismatch(`${module}.${name}`, id, caller)];
  });
}

/**
 * | front | function streams | function does not |
 * |---|---|---|
 * | streams | fits | the client gets Lambda's own result as the response |
 * | does not, but could | a whole response, with its limits | fits |
 * | cannot | a whole response, with its limits | fits |
 */
function mismatch(exported: string, id: string, { called, canStream, streams }: Caller) {
  if (streams)
    return `${id} does not stream, and ${called} that streams calls it; add { stream: true } to ${exported}, or write the template without --stream`;
  const fix = canStream ? "write the template with --stream" : "use a function URL or a REST API";
  return `${id} streams, and ${called} calls it, which does not; ${fix}, or leave out { stream: true } of ${exported}`;
}
