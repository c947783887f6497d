import { setTimeout as sleep } from "node:timers/promises";
import type { Findings } from "./findings.ts";
import type { Host, SoakAnswer, SoakRequest } from "./host.ts";
import type { Latencies } from "./latency.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import { mottoKey, stepKey } from "./server.ts";
import type { SoakTenant, Tenants } from "./tenants.ts";

/** Parts that all clients share. */
export interface ClientParts {
  readonly random: Random;
  readonly tenants: Tenants;
  readonly ledger: Ledger;
  readonly latencies: Latencies;
  readonly findings: Findings;
  /** The host that takes the next request. */
  readonly hostOf: (random: Random) => Host;
}

/** A client gives up on a request after this time. The outcome is then unknown. */
const patienceMs = 120_000;
const [shortestPauseMs, longestPauseMs] = [100, 2_000];

/** One client: sends requests of all tenants, one at a time, and repeats those that fail. */
export class Client {
  readonly #parts: ClientParts;
  #lastStep: number;
  readonly #stride: number;

  /** @param n - number of the client; no two write the same value of configuration. */
  constructor(parts: ClientParts, n: number, count: number) {
    this.#parts = parts;
    this.#lastStep = n;
    this.#stride = count;
  }

  /** Sends requests until `end` aborts. `pauseMs` is the longest pause between two. */
  async run(end: AbortSignal, pauseMs: number): Promise<void> {
    const { random, tenants } = this.#parts;
    while (!end.aborted) {
      await this.#request(random.of(tenants.all));
      await sleep(random.fraction() * pauseMs);
    }
  }

  /** Reads until `end` aborts: so many cheap requests that the footprint shows anything they leave behind. */
  async read(end: AbortSignal, pauseMs: number): Promise<void> {
    const { random, tenants } = this.#parts;
    while (!end.aborted) {
      await this.#get(random.of(tenants.all), "/preferences");
      await sleep(random.fraction() * pauseMs);
    }
  }

  /** Sets a value that differs for each tenant. */
  async introduce(tenant: SoakTenant): Promise<void> {
    const answer = await this.#configure(tenant, mottoKey, tenant.motto);
    if (answer.status !== 200) throw new Error(`the motto was not set: ${answer.text}`);
  }

  async #request(tenant: SoakTenant): Promise<void> {
    const choice = this.#parts.random.fraction();
    if (choice < 0.35) await this.#write(tenant);
    else if (choice < 0.45) await this.#refusedWrite(tenant);
    else if (choice < 0.6) await this.#changeStep(tenant);
    else if (choice < 0.8) await this.#showAny(tenant);
    else await this.#get(tenant, "/preferences");
  }

  /** A write that is retried until it is accepted, or abandoned after its first failure. Some are repeated. */
  async #write(tenant: SoakTenant): Promise<void> {
    const { random, ledger, findings } = this.#parts;
    const id = tenant.newId("entry");
    const request = this.#entryRequest(tenant, id, { text: "x".repeat(random.below(8_000)) });
    const isLeft = random.chance(0.1);
    ledger.entries.set(id, "unknown");
    const answer = isLeft
      ? await this.#send(tenant, request)
      : await this.#retried(tenant, request, ({ status }) => status === 200);
    if (answer.status !== 200) return;
    ledger.entries.set(id, "accepted");
    if (random.chance(0.3)) {
      const again = await this.#retried(tenant, request, ({ status }) => status === 200);
      if (again.status === 200 && (again.body !== answer.body || !again.isReplayed))
        findings.add(
          "a repeated write gets the answer of the first",
          `${id}: ${answer.body} and then ${again.body}, replayed: ${again.isReplayed}`,
        );
    }
    if (random.chance(0.3)) await this.#show(tenant, id);
  }

  async #refusedWrite(tenant: SoakTenant): Promise<void> {
    const { ledger, findings } = this.#parts;
    const id = tenant.newId("entry");
    const request = this.#entryRequest(tenant, id, { text: "", isRefused: true });
    ledger.entries.set(id, "refused");
    const answer = await this.#retried(tenant, request, isRefusal);
    if (answer.status === 200)
      findings.add("a refused write left nothing, and no event", `${id}: ${answer.body}`);
  }

  async #changeStep(tenant: SoakTenant): Promise<void> {
    this.#lastStep += this.#stride;
    const value = this.#lastStep;
    const { status } = await this.#configure(tenant, stepKey, value);
    this.#parts.ledger.configWrites.push({ tenant: tenant.n, value, isAccepted: status === 200 });
  }

  #configure(tenant: SoakTenant, key: string, value: unknown): Promise<SoakAnswer> {
    const headers = { ...this.#callerOf(tenant), "idempotency-key": crypto.randomUUID() };
    const request = { method: "PUT", path: `/config/${key}`, headers, body: { value } } as const;
    return this.#retried(tenant, request, ({ status }) => status === 200);
  }

  async #showAny(tenant: SoakTenant): Promise<void> {
    const { random, ledger } = this.#parts;
    const known = [...ledger.entries.keys()];
    const id = known[random.below(known.length)];
    if (id !== undefined && this.#parts.tenants.numbersIn(id).has(tenant.n))
      await this.#show(tenant, id);
  }

  async #show(tenant: SoakTenant, id: string): Promise<void> {
    const { ledger, findings } = this.#parts;
    const wasAccepted = ledger.entries.get(id) === "accepted";
    const answer = await this.#get(tenant, `/entries/${id}`);
    if (answer.status !== 200) return;
    const { amount } = JSON.parse(answer.body) as { readonly amount?: unknown };
    if (wasAccepted && amount !== 1)
      findings.add("a read shows each write that was accepted before", `${id}: ${answer.body}`);
  }

  #get(tenant: SoakTenant, path: string): Promise<SoakAnswer> {
    return this.#send(tenant, { method: "GET", path, headers: this.#callerOf(tenant) });
  }

  #entryRequest(tenant: SoakTenant, id: string, body: object): SoakRequest {
    const headers = { ...this.#callerOf(tenant), "idempotency-key": id };
    return { method: "POST", path: `/entries/${id}`, headers, body };
  }

  /** Keys belong to users, so all attempts of a request have the same caller. */
  #callerOf(tenant: SoakTenant) {
    return { authorization: `Bearer ${this.#parts.random.of(tenant.tokens)}` };
  }

  /** Sends a request, with its key, until it gets an answer that ends it. */
  async #retried(
    tenant: SoakTenant,
    request: SoakRequest,
    isEnd: (answer: SoakAnswer) => boolean,
  ): Promise<SoakAnswer> {
    const { random, ledger } = this.#parts;
    const untilMs = performance.now() + patienceMs;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#send(tenant, request);
      if (isEnd(answer) || answer.status === 200 || performance.now() > untilMs) return answer;
      ledger.retries += 1;
      const mostMs = Math.min(longestPauseMs, shortestPauseMs * 2 ** attempt);
      await sleep(shortestPauseMs + random.fraction() * mostMs);
    }
  }

  async #send(tenant: SoakTenant, request: SoakRequest): Promise<SoakAnswer> {
    const { random, tenants, latencies, findings, hostOf } = this.#parts;
    const headers = { ...request.headers, "x-request-id": tenant.newId("request") };
    const beganMs = performance.now();
    const answer = await hostOf(random).send({ ...request, headers });
    if (answer.status !== 0) latencies.record(performance.now() - beganMs);
    const others = [...tenants.numbersIn(answer.text)].filter((n) => n !== tenant.n);
    if (others.length > 0)
      findings.add(
        "no response has the ID of another tenant",
        `${request.method} ${request.path} of ${tenant.id}: ${answer.text}`,
      );
    return answer;
  }
}

/** The commit's condition failed: nothing was written. A concurrent duplicate gets another 409. */
function isRefusal({ status, body }: SoakAnswer): boolean {
  return status === 409 && body.includes('"condition_failed"');
}
