// Writes that an earlier process has done, or was at.
import type { HostAnswer, HostRequest } from "./host.ts";
import { comparable, type Line, line, type Party, patience, sent } from "./line.ts";

/** A write, by whom and as what. */
type Write = (party: Pick<Party, "ann" | "name">) => readonly [path: string, request: HostRequest];

const keyed =
  (
    path: string,
    body: unknown = { some: "input" },
    headers: Readonly<Record<string, string>> = {},
  ): Write =>
  ({ ann, name }) => [
    path,
    { as: ann, body, headers: { "idempotency-key": `"key ${name}"`, ...headers } },
  ];

const typedInput = {
  when: "2026-02-03T04:05:06.789Z",
  amount: "12345678901234567890",
  tags: ["b", "a", "ünï"],
  prices: { z: 1.5, a: -0 },
  bytes: "AP+A",
  nested: { b: 1e21, a: [null, true, { d: "\u2028", c: '"\\' }] },
};

/** Writes whose repeat gets the answer of before, byte for byte. */
const replayed: readonly (readonly [name: string, write: Write])[] = [
  ["a small JSON answer", keyed("/answers/small")],
  ["an answer that is stored compressed", keyed("/answers/compressed")],
  ["an answer that is stored in parts", keyed("/answers/parts")],
  ["an answer of text", keyed("/answers/text")],
  ["an answer of bytes", keyed("/answers/bytes")],
  ["an answer without a body", keyed("/answers/none")],
  ["an answer that was committed", (party) => keyed(`/commits/${party.name}`)(party)],
  ["an answer to input that a schema has transformed", keyed("/typed", typedInput)],
  [
    "an answer to bytes",
    keyed("/bodies/bytes", "bytes \u0000", { "content-type": "application/octet-stream" }),
  ],
  [
    "an answer to a form",
    keyed("/bodies/form", "b=2&a=1&b=3", { "content-type": "application/x-www-form-urlencoded" }),
  ],
  [
    "an answer to text",
    keyed("/bodies/text", "text ✓", { "content-type": "text/plain; charset=utf-8" }),
  ],
  [
    "an answer by a long Idempotency-Key",
    ({ ann, name }) => [
      "/answers/small",
      { as: ann, body: {}, headers: { "idempotency-key": name.padEnd(255, "!") } },
    ],
  ],
  [
    "an answer by X-Request-ID",
    ({ ann, name }) => [
      "/answers/small",
      { as: ann, body: { b: 1, a: [2] }, headers: { "x-request-id": name } },
    ],
  ],
  [
    "an answer by X-Request-ID to input that a schema has transformed",
    ({ ann, name }) => ["/typed", { as: ann, body: typedInput, headers: { "x-request-id": name } }],
  ],
  [
    "an answer by an X-Request-ID that is not accepted",
    ({ ann, name }) => [
      "/answers/small",
      { as: ann, body: {}, headers: { "x-request-id": `${name} with a space` } },
    ],
  ],
  [
    "an answer to nobody signed in",
    ({ name }) => ["/open", { body: { a: 1 }, headers: { "idempotency-key": name } }],
  ],
  ["an encrypted answer", keyed("/secrets")],
];

export const answerLines: readonly Line[] = [
  ...replayed.map(([name, write]) =>
    line(
      `${name} is replayed`,
      async (party) => kept(await sent(party.host, ...write(party))),
      async (party, left) => {
        const { expect, host, world } = party;
        const runs = world.runs.length;
        const answer = await host.send(...write(party));
        expect(kept(answer)).toEqual(left);
        expect(answer.headers["idempotent-replayed"]).toBe("true");
        expect(world.runs).toHaveLength(runs);
      },
    ),
  ),
  line(
    "an encrypted answer of before the key was retired is replayed",
    async (party) => kept(await sent(party.earlier, ...keyed("/secrets")(party))),
    async (party, left) =>
      party.expect(kept(await party.host.send(...keyed("/secrets")(party)))).toEqual(left),
  ),
  ...(
    [
      ["plain", "/answers/small", { other: "input" }],
      ["transformed", "/typed", { ...typedInput, tags: ["b", "a"] }],
    ] as const
  ).map(([what, path, other]) =>
    line(
      `an Idempotency-Key with other ${what} input is refused`,
      async (party) =>
        void (await sent(party.host, ...keyed(path, what === "plain" ? {} : typedInput)(party))),
      async (party) => {
        const { status, body } = await party.host.send(...keyed(path, other)(party));
        party
          .expect([status, JSON.parse(body)])
          .toMatchObject([422, { error: "idempotency_key_reused" }]);
      },
    ),
  ),
  line(
    "an answer of more than 300 seconds ago is forgotten",
    async (party) => kept(await sent(party.host, ...keyed("/answers/small")(party))),
    async (party, left) => {
      const answer = await party.host.send(...keyed("/answers/small")(party));
      party.expect(answer.headers["idempotent-replayed"]).toBeUndefined();
      party.expect(answer.body).not.toBe(left.body);
    },
    { ageMs: 302_000 },
  ),
  line(
    "a write in progress is waited for, and its repeat refused meanwhile",
    beginHeld,
    async (party) => {
      const { expect, hasty, world, name } = party;
      const { status, headers, body } = await hasty.send(...held(party));
      world.release(name);
      expect([status, JSON.parse(body)]).toMatchObject([409, { error: "request_in_progress" }]);
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    },
  ),
  line(
    "a write in progress whose lease is over is taken over, and its late owner commits nothing",
    beginHeld,
    async (party) => {
      const { expect, host, store, world, ann, name } = party;
      world.runs.length = 0;
      const taken = host.send(...held(party));
      await expect.poll(() => world.runs, patience).toEqual([`${host.version} commit ${name}`]);
      world.release(name);
      const answer = await taken;
      expect(JSON.parse(answer.body)).toMatchObject({ name, by: host.version });
      expect(answer.headers["idempotent-replayed"]).toBeUndefined();
      expect(await store.effect(ann.tenantId, "commit", name)).toBe(1);
      expect(kept(await host.send(...held(party)))).toEqual(kept(answer));
    },
    { ageMs: 40_000 },
  ),
];

const held: Write = (party) => keyed(`/commits/${party.name}`)(party);

/** Starts a write, and leaves it in its handler. */
export async function beginHeld(party: Party): Promise<void> {
  const { host, world, name } = party;
  world.hold(name);
  void host.send(...held(party)).catch(() => undefined);
  await until(() => world.runs.includes(`${host.version} commit ${name}`));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** The part of an answer that a repeat gets: everything that is not created again. */
function kept({ status, headers, body }: HostAnswer) {
  const names = ["content-type", "location", "etag", "x-kept"];
  return {
    status,
    body: comparable(body),
    headers: Object.fromEntries(
      names.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])),
    ),
  };
}
