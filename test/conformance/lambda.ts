import type { Server } from "keelson";
import { type HttpApiResult, lambdaHttp } from "keelson/lambda";
import { lambdaEvent } from "keelson/testing";
import { vi } from "vitest";

/** What an API Gateway event is made of, as far as it matters here. */
export interface LambdaRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Who the gateway's authorizer says is calling. */
  readonly as?: { readonly id: string; readonly tenantId: string };
}

/** A server as a Lambda function in this process, with the lines it has printed so far. */
export interface LambdaFunction {
  invoke(request: LambdaRequest): Promise<HttpApiResult>;
  /** What went to stdout, without the line that each request has at its end. */
  readonly lines: readonly string[];
  /** The lines, parsed. */
  logs(): Record<string, unknown>[];
}

/** Runs `work` with a server as a Lambda function in an environment of `variables`. */
export async function withLambda<Result>(
  server: Server,
  variables: Readonly<Record<string, string | undefined>>,
  work: (lambda: LambdaFunction) => Promise<Result>,
): Promise<Result> {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const lines: string[] = [];
  const stdout = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(
      ...String(text)
        .split("\n")
        .filter((line) => line !== "" && !line.includes("request.completed")),
    );
    return true;
  });
  try {
    const handler = lambdaHttp(server);
    return await work({
      invoke: ({ as, ...request }) => {
        const claims = as === undefined ? {} : { claims: { sub: as.id, tenantId: as.tenantId } };
        return handler(lambdaEvent("httpApi", { ...request, ...claims }), context);
      },
      lines,
      logs: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    });
  } finally {
    stdout.mockRestore();
    vi.unstubAllEnvs();
  }
}

/** Without a time that runs out, which is the signal of some. */
const context = { awsRequestId: "aws-1" } as Parameters<ReturnType<typeof lambdaHttp>>[1]; // the part that is read
