import { type HttpProcess, load, startHttp } from "./http.ts";
import { median, type Result, result } from "./measure.ts";

const few = 20_000;
const many = 200_000;
const readings = 5;

/** Whether a container that goes on serving grows: its heap after many requests, beside its own after few. */
export async function memoryResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  const server = await startHttp("ours", "logged", env);
  try {
    await load(server.port, "logged", few);
    const peer = await heapOf(server);
    await load(server.port, "logged", many - few);
    return [
      result({
        id: "http-memory",
        ours: await heapOf(server),
        peer,
        unit: "bytes",
      }),
    ];
  } finally {
    server.child.disconnect();
  }
}

async function heapOf(server: HttpProcess): Promise<number> {
  const bytes: number[] = [];
  for (let reading = 0; reading < readings; reading += 1) bytes.push(await server.heap());
  return median(bytes);
}
