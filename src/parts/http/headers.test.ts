import { expect, test } from "vitest";
import { createHeaderCheck } from "./headers.ts";

const refusalOfHeaders = createHeaderCheck();

test.each([
  "example.com",
  "EXAMPLE.com:8080",
  "example.com.",
  "example.com:",
  "localhost",
  "my_service.internal:3000",
  "xn--bcher-kva.example",
  "203.0.113.9",
  "203.0.113.9:80",
  "[::1]",
  "[2001:db8::7]:443",
  "[::ffff:203.0.113.9]",
  "[fe80::1%25eth0]:80",
  "a1.execute-api.eu-west-1.amazonaws.com",
  "a~b!c$d&e'f(g)h*i+j;k=l",
  "b%C3%BCcher.example",
])("accepts the host %s", (host) => {
  expect(refusalOfHeaders({ host })).toBeUndefined();
});

test.each([
  "",
  " ",
  "a b",
  "a, a",
  "a,b",
  "a/b",
  "a/",
  "http://a",
  "user@a",
  "a?b",
  "a#b",
  "a\\b",
  "a\tb",
  "a\u0000",
  "a\r\nx",
  "b\u00fccher.example",
  "a%zz",
  "a%2",
  ":80",
  "a:b",
  "a:80:80",
  "a:-1",
  "::1",
  "[::1",
  "[]",
  "[1]",
  "[::1]a",
  "[::1]:x",
  "<a>",
  '"a"',
  "{a}",
])("refuses the host %j", (host) => {
  const refusal = refusalOfHeaders({ host });
  expect(refusal).toMatchObject({ code: "malformed_request", status: 400 });
  expect(refusal?.message).toContain(JSON.stringify(host));
});

test("an error message truncates a long host", () => {
  expect(refusalOfHeaders({ host: "/".repeat(10_000) })?.message.length).toBeLessThan(200);
});

test.each([
  "Bearer a.b.c",
  "Basic YTpi==",
  "bearer",
  'Digest username="a, b", realm="x\\", y", uri="/", nc=1',
  'Digest  username = "a" ,realm=x,',
  "AWS4-HMAC-SHA256 Credential=A/20260101/eu-west-1/s3/aws4_request, SignedHeaders=content-type;host, Signature=0f",
  'Signature keyId="k",algorithm="a",headers="(request-target) host",signature="c2ln"',
  'OAuth oauth_nonce="", oauth_version="1.0"',
])("accepts %s as one credential", (authorization) => {
  expect(refusalOfHeaders({ authorization })).toBeUndefined();
});

test.each([
  "Bearer a, Bearer b",
  "Bearer a,Bearer b",
  "Bearer a, bearer a",
  "Basic YTpi==, Bearer a",
  "Bearer a, Basic YTpi=",
  "Bearer a, ",
  ", Bearer a",
  'Digest a="1", Bearer b',
  'Digest a="1, Bearer b',
  "key, key",
])("refuses %s as more than one credential", (authorization) => {
  expect(refusalOfHeaders({ authorization })).toMatchObject({
    code: "malformed_request",
    status: 400,
  });
});

test("checks 16 KB headers with unterminated quotes in linear time", () => {
  const begun = process.cpuUsage(); // and no clock, which also counts what other processes do
  for (const text of ['"\\', '"', "a=", "a, "])
    refusalOfHeaders({ authorization: `Digest ${text.repeat(8_000)},` });
  for (const text of ["a.", "%4", "[:", "1:"]) refusalOfHeaders({ host: text.repeat(8_000) });
  expect(process.cpuUsage(begun).user).toBeLessThan(200_000);
});

test("refuses an invalid host after a valid one, and still accepts the valid one afterwards", () => {
  const check = createHeaderCheck();
  expect(check({ host: "example.com" })).toBeUndefined();
  for (const host of ["example.com, other.example", "example.com/", ""]) {
    expect(check({ host })).toMatchObject({ code: "malformed_request" });
    expect(check({ host })).toMatchObject({ code: "malformed_request" });
  }
  expect(check({ host: "example.com" })).toBeUndefined();
});

test("checks the credentials for new and known hosts alike", () => {
  const check = createHeaderCheck();
  for (const host of ["example.com", "example.com"]) {
    expect(check({ host, authorization: "Bearer a, Bearer b" })).toMatchObject({
      code: "malformed_request",
    });
  }
});
