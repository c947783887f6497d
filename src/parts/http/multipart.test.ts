import { describe, expect, test } from "vitest";
import { readMultipart } from "./multipart.ts";

const typed = (boundary = "B") => ({ "content-type": `multipart/form-data; boundary=${boundary}` });
const part = (head: string, content: string) =>
  `--B\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
const read = (text: string, headers: Readonly<Record<string, string>> = typed()) =>
  readMultipart(headers, Buffer.from(text));
/** Sends a form as fetch does. */
async function sent(form: FormData) {
  const request = new Response(form);
  const headers = { "content-type": String(request.headers.get("content-type")) };
  return readMultipart(headers, new Uint8Array(await request.arrayBuffer()));
}

test("fields are strings, files are File, and repeated names are lists in their order", async () => {
  const form = new FormData();
  form.append("title", "Ärger \u{1f600}");
  form.append("tag", "a");
  form.append("tag", "b");
  form.append("tag", new File(["c"], "c.txt"));
  form.append(
    "scan",
    new File([new Uint8Array([0, 255, 13, 10])], "scan.pdf", { type: "application/pdf" }),
  );
  const fields = await sent(form);

  expect(Object.getPrototypeOf(fields)).toBe(null);
  expect(Object.keys(fields ?? {})).toEqual(["title", "tag", "scan"]);
  expect(fields).toMatchObject({ title: "Ärger \u{1f600}", tag: ["a", "b", expect.any(File)] });
  const scan = fields?.["scan"] as File;
  expect(scan).toBeInstanceOf(File);
  expect([scan.name, scan.type, scan.size]).toEqual(["scan.pdf", "application/pdf", 4]);
  expect(new Uint8Array(await scan.arrayBuffer())).toEqual(new Uint8Array([0, 255, 13, 10]));
});

test("an empty body is absent, and a form without parts is empty", async () => {
  expect(await readMultipart({}, new Uint8Array(0))).toBeUndefined();
  expect(await read("--B--\r\n")).toEqual({});
});

test("a file that the user did not choose is left out, an empty one is not", async () => {
  const unchosen = part('name="a"; filename=""', "");
  const empty = part('name="b"; filename="b.txt"', "");
  const unnamed = part('name="c"; filename=""', "c");
  const fields = await read(`${unchosen}${empty}${unnamed}--B--\r\n`);
  expect(Object.keys(fields ?? {})).toEqual(["b", "c"]);
});

test("names of the prototype are ordinary fields", async () => {
  const names = ["__proto__", "constructor", "toString"];
  const fields = await read(
    `${names.map((name) => part(`name="${name}"`, "x")).join("")}--B--\r\n`,
  );
  expect(Object.keys(fields ?? {})).toEqual(names);
  expect(({} as { x?: unknown }).x).toBeUndefined();
});

test("a path in a file's name stays text, for the application to ignore", async () => {
  const fields = await read(`${part('name="f"; filename="../../etc/passwd"', "x")}--B--\r\n`);
  expect(Object(fields)["f"].name).toBe("../../etc/passwd");
});

test.each([
  ["no type", {}],
  ["another type", { "content-type": "application/json" }],
  ["a type that only begins alike", { "content-type": "multipart/form-data2; boundary=B" }],
  ["another kind of multipart", { "content-type": "multipart/mixed; boundary=B" }],
  ["a compressed body", { ...typed(), "content-encoding": "gzip" }],
])("refuses %s with 415", async (_, headers) => {
  await expect(read("--B--\r\n", headers)).rejects.toMatchObject({ status: 415 });
});

test.each([
  ["no boundary", "--B--\r\n", { "content-type": "multipart/form-data" }],
  ["an empty boundary", "----\r\n", typed('""')],
  ["a boundary that is too long", "--B--\r\n", typed("B".repeat(71))],
  ["a boundary with another character", "--B--\r\n", typed('"B\\"\u00e9"')],
  ["another boundary than the body's", part('name="a"', "x"), typed("C")],
  ["a body without an end", part('name="a"', "x"), typed()],
  ["a part without a name", `${part("", "x")}--B--\r\n`, typed()],
  ["text", "text", typed()],
  [
    "a file's name with a line break",
    `${part('name="a"; filename="a%0D%0Ab"', "x")}--B--\r\n`,
    typed(),
  ],
  [
    "a file's name of 256 characters",
    `${part(`name="a"; filename="${"a".repeat(256)}"`, "x")}--B--\r\n`,
    typed(),
  ],
  [
    "a file's type of 256 characters",
    `--B\r\nContent-Disposition: form-data; name="a"; filename="a"\r\nContent-Type: a/${"b".repeat(254)}\r\n\r\nx\r\n--B--\r\n`,
    typed(),
  ],
  ["1,001 parts", `${part('name="a"', "x").repeat(1_001)}--B--\r\n`, typed()],
])("refuses %s with 400", async (_, text, headers) => {
  await expect(read(text, headers)).rejects.toMatchObject({
    code: "malformed_request",
    status: 400,
  });
});

describe("takes", () => {
  test("1,000 parts, and a file's name of 255 characters", async () => {
    const many = part('name="a"', "x").repeat(999);
    const long = part(`name="b"; filename="${"b".repeat(255)}"`, "x");
    const fields = await read(`${many}${long}--B--\r\n`);
    expect(fields?.["a"]).toHaveLength(999);
  });

  test.each([
    ["in quotes", 'multipart/form-data; charset=utf-8; boundary="a b:c"', "a b:c"],
    ["in any case", "Multipart/Form-Data;Boundary=abc ; charset=utf-8", "abc"],
  ])("a boundary %s", async (_, type, boundary) => {
    const text = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--${boundary}--\r\n`;
    expect(await read(text, { "content-type": type })).toEqual({ a: "x" });
  });
});
