// The tables of docs/cost.md, from measured charges and list prices.
import { pollSeconds, sweepMs } from "../../src/hosts/container/workers.ts";
import type { Bill } from "./meter.ts";
import { dollarsOf, pricedAt, prices } from "./prices.ts";
import type { Work } from "./works.ts";

/** Payloads in bytes, with their headings. */
export const sizes = [
  [100, "100 B"],
  [1_024, "1 KB"],
  [10_240, "10 KB"],
] as const;

export interface Measured {
  /** By size. */
  readonly works: readonly (readonly Work[])[];
  readonly peers: readonly Readonly<Record<string, Bill>>[];
}

/** Each generated table by its name. */
export function costTables(measured: Measured): Readonly<Record<string, string>> {
  return {
    work: workTable(measured),
    peers: peerTable(measured),
    idle: idleTable(measured),
    fronts: frontTable(measured),
    prices: priceTable(),
  };
}

const sizeHeads = sizes.map(([, head]) => head);

function workTable({ works: [small = [], ...larger] }: Measured): string {
  const rows = small
    .filter(({ name }) => name !== "idle")
    .map(({ name, bill, among }) => [
      name,
      shown(bill.readUnits / among),
      shown(bill.writeUnits / among),
      shown(bill.events / among),
      shown(requestsOf(bill) / among),
      ...[small, ...larger].map((works) => {
        const work = works.find((one) => one.name === name) as Work; // safe: each size does the same work
        return dollars(dollarsOf(work.bill) / among);
      }),
    ]);
  const heads = ["Work", "Read units", "Write units", "Events", "SQS requests"];
  return tableOf([...heads, ...sizeHeads], rows);
}

function peerTable({ works, peers }: Measured): string {
  const [ours = []] = works;
  const rows = ours
    .map(({ name }) => name)
    .filter((name) => peers[0]?.[name] !== undefined && name !== "plain request")
    .map((name) => [
      name,
      ...works.flatMap((of, size) => {
        const our = of.find((work) => work.name === name) as Work; // safe: from the same list
        const their = peers[size]?.[name] as Bill; // safe: each size does the same work
        return [dollars(dollarsOf(our.bill)), dollars(dollarsOf(their))];
      }),
    ]);
  const heads = sizeHeads.flatMap((head) => [`keelson, ${head}`, `Powertools, ${head}`]);
  return tableOf(["Work", ...heads], rows);
}

const monthMs = 30 * 86_400_000;

function idleTable({ works: [small = []] }: Measured): string {
  const measured = small.find(({ name }) => name === "idle") as Work; // safe: it is measured
  const sweepUnits = measured.idle.readUnits;
  const [polls, sweeps] = [pollSeconds * 1_000, sweepMs].map((ms) => monthMs / ms);
  const cost = (times = 0, perMillion: number) => (times * perMillion) / 1_000_000;
  const poll = cost(polls, prices.standard.dollars);
  const fifo = cost(polls, prices.fifo.dollars);
  const sweep = cost(sweeps, sweepUnits * prices.read.dollars);
  const perMonth = (times = 0) => Math.round(times).toLocaleString("en-US");
  return tableOf(
    ["Part", "Times a month", "Units or requests each time", "Dollars a month"],
    [
      ["long polls of a standard queue", perMonth(polls), "1", dollars(poll)],
      ["long polls of a FIFO queue", perMonth(polls), "1", dollars(fifo)],
      ["sweeps of the outbox", perMonth(sweeps), shown(sweepUnits), dollars(sweep)],
      ["a server with events and jobs", "", "", dollars(poll + fifo + sweep)],
    ],
  );
}

/** Default memory of a function, and the time of a request. */
const [memoryGb, requestSeconds] = [0.5, 0.02];

function frontTable({ works: [small = []] }: Measured): string {
  const plain = small.find(({ name }) => name === "plain request") as Work; // safe: it is measured
  const log = (plain.logBytes * prices.logs.dollars) / 1_000; // a million lines, by the gigabyte
  const time = memoryGb * requestSeconds * 1_000_000 * prices.gbSecond.dollars;
  const lambda = prices.invocation.dollars + time;
  const balancer = prices.balancer.dollars * 24 * 30;
  const row = (front: string, own: number, run: number) => [
    front,
    dollars(own),
    dollars(run),
    dollars(log),
    dollars(own + run + log),
  ];
  return tableOf(
    ["Front", "Its requests", "Lambda", "Log lines", "Together"],
    [
      row("HTTP API", prices.httpApi.dollars, lambda),
      row("REST API", prices.restApi.dollars, lambda),
      row("function URL", 0, lambda),
      ["Web Function", "no price found", "no price found", dollars(log), ""],
      ["load balancer, container", `${dollars(balancer)} a month`, "", dollars(log), ""],
    ],
  );
}

function priceTable(): string {
  const rows = Object.values(prices).map(({ name, dollars: price, per, page, seen }) => [
    name,
    `$${price} / ${per}`,
    `[${new URL(page).pathname}](${page})`,
    seen,
  ]);
  return tableOf([`Price on ${pricedAt}`, "Dollars", "AWS's page", "Number seen on"], rows);
}

function requestsOf({ queueRequests: { standard, fair, fifo } }: Bill): number {
  return standard + fair + fifo;
}

function shown(count: number): string {
  return String(Math.round(count * 1_000) / 1_000);
}

function dollars(amount: number): string {
  return amount > 0 && amount < 0.01 ? `${amount.toFixed(4)}` : amount.toFixed(2);
}

function tableOf(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`.replaceAll(/ {2}\|/g, " |");
  return [line(heads), `|${"---|".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}
