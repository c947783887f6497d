import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";

// Lambda's Runtime API on loopback, as far as a function needs it, and one environment of a function that talks to it. Lambda's
// own emulator is not documented to stream.

/** The runtime's answer to an event. */
export interface Invoked {
  readonly headers: IncomingMessage["headers"];
  /** Status and headers of a response that streams; empty for another. */
  readonly prelude: Record<string, unknown>;
  readonly body: Buffer;
  readonly text: string;
  /** Times of the chunks since the invocation was given, in milliseconds. */
  readonly chunksMs: readonly number[];
  readonly isWhole: boolean;
  readonly trailers: NodeJS.Dict<string>;
}

export interface RuntimeProgram {
  /** The module of `aws-lambda-ric` that Node runs. */
  readonly runtime: string;
  readonly folder: string;
  /** The handler, as in `app.handler`. */
  readonly handler: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Takes each line of the function, instead of `text`. */
  readonly onLine?: (line: string) => void;
  /** The function's clock, which its deadlines follow. Default: this process's. */
  readonly now?: () => number;
}

interface Waiting {
  readonly event: unknown;
  readonly givenMs: number;
  readonly answered: (invoked: Invoked) => void;
}

/** One environment of a function. Like Lambda, starts the runtime again when it ends. */
export class FunctionEnvironment {
  /** Output of the function. */
  text = "";
  readonly #program: RuntimeProgram;
  readonly #api: Server;
  readonly #waiting: Waiting[] = [];
  /** Events that the runtime has and has not started to answer. */
  readonly #running = new Map<string, Waiting>();
  #runtime: ChildProcess | undefined;
  /** The runtime, when it waits for an event. */
  #next: ServerResponse | undefined;
  #isOver = false;

  private constructor(program: RuntimeProgram) {
    this.#program = program;
    this.#api = createServer((incoming, outgoing) => this.#serve(incoming, outgoing));
    this.#api.keepAliveTimeout = 0; // or it closes the connection on which the runtime sends an answer
  }

  static async start(program: RuntimeProgram): Promise<FunctionEnvironment> {
    const environment = new FunctionEnvironment(program);
    environment.#api.listen(0, "127.0.0.1");
    await once(environment.#api, "listening");
    environment.#spawn();
    return environment;
  }

  /** Events are handed to the function one at a time, in order. */
  invoke(event: unknown): Promise<Invoked> {
    return new Promise((answered) => {
      this.#waiting.push({ event, givenMs: performance.now(), answered });
      this.#hand();
    });
  }

  /** Signals the runtime. An invocation that is running is answered as not whole, and the next one gets a new runtime. */
  signal(name: NodeJS.Signals): void {
    this.#runtime?.kill(name);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    const runtime = this.#runtime;
    if (runtime !== undefined && runtime.exitCode === null && runtime.signalCode === null) {
      const exited = once(runtime, "exit");
      runtime.kill("SIGKILL");
      await exited;
    }
    this.#api.closeAllConnections();
    this.#api.close();
  }

  #spawn(): void {
    const { runtime, folder, handler, env = {}, onLine } = this.#program;
    const { port } = this.#api.address() as AddressInfo; // safe: it listens on a port
    const child = spawn(process.execPath, [runtime, handler], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"],
        AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
        _HANDLER: handler,
        AWS_LAMBDA_FUNCTION_NAME: "streamed",
        AWS_LAMBDA_FUNCTION_VERSION: "1",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
        AWS_LAMBDA_LOG_GROUP_NAME: "/aws/lambda/streamed",
        AWS_LAMBDA_LOG_STREAM_NAME: "test",
        AWS_REGION: "us-east-1",
        LAMBDA_TASK_ROOT: folder,
        ...env,
      },
    });
    this.#runtime = child;
    for (const stream of [child.stdout, child.stderr]) {
      if (onLine !== undefined) createInterface({ input: stream }).on("line", onLine);
      else
        stream.on("data", (chunk: Buffer) => {
          this.text += chunk.toString();
        });
    }
    child.once("exit", () => {
      if (this.#runtime === child) this.#next = undefined;
      this.#giveUp();
      if (!this.#isOver) this.#spawn();
    });
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const path = incoming.url ?? "";
    if (path.endsWith("/invocation/next")) {
      this.#giveUp(); // the answer has been lost if the runtime asks for another event
      this.#next = outgoing;
      this.#hand();
      return;
    }
    const [, id = ""] = /\/invocation\/([^/]+)\//.exec(path) ?? [];
    const running = this.#running.get(id);
    this.#running.delete(id);
    const chunks: Buffer[] = [];
    const times: number[] = [];
    incoming.on("data", (chunk: Buffer) => {
      times.push(performance.now());
      chunks.push(chunk);
    });
    incoming.on("end", () => outgoing.writeHead(202).end());
    incoming.on("error", () => undefined);
    incoming.on("close", () =>
      running?.answered(invokedOf(incoming, Buffer.concat(chunks), running.givenMs, times)),
    );
  }

  #giveUp(): void {
    for (const [id, { answered }] of this.#running) {
      this.#running.delete(id);
      answered(unanswered);
    }
  }

  #hand(): void {
    const [first] = this.#waiting;
    if (this.#next === undefined || first === undefined) return;
    this.#waiting.shift();
    const id = crypto.randomUUID();
    this.#running.set(id, first);
    this.#next.writeHead(200, {
      "content-type": "application/json",
      "lambda-runtime-aws-request-id": id,
      "lambda-runtime-deadline-ms": String((this.#program.now ?? Date.now)() + 30_000),
      "lambda-runtime-invoked-function-arn":
        "arn:aws:lambda:us-east-1:123456789012:function:streamed",
    });
    this.#next.end(JSON.stringify(first.event));
    this.#next = undefined;
  }
}

/** Result of an invocation whose runtime ended. */
const unanswered: Invoked = {
  headers: {},
  prelude: {},
  body: Buffer.alloc(0),
  text: "",
  chunksMs: [],
  isWhole: false,
  trailers: {},
};

function invokedOf(
  { headers, complete, trailers }: IncomingMessage,
  bytes: Buffer,
  givenMs: number,
  times: readonly number[],
): Invoked {
  const end = bytes.indexOf(new Uint8Array(8));
  const body = bytes.subarray(end === -1 ? 0 : end + 8);
  return {
    headers,
    prelude:
      end === -1 ? {} : (JSON.parse(bytes.subarray(0, end).toString()) as Record<string, unknown>),
    body,
    text: body.toString(),
    chunksMs: times.map((at) => at - givenMs),
    isWhole: complete,
    trailers,
  };
}
