import { expect, test } from "vitest";
import { createGate } from "./gate.ts";

const long = 600_000;

test("requests wait until the gate opens, and later ones need not wait", async () => {
  const gate = createGate(long);
  const waiting = [gate.opened(), gate.opened()];
  expect(gate.isOpen).toBe(false);
  gate.open();
  expect(await Promise.all(waiting)).toEqual([true, true]);
  expect(gate.isOpen).toBe(true);
  expect(await gate.opened()).toBe(true);
});

test("requests are turned away when the start fails, and those that come after", async () => {
  const gate = createGate(long);
  const waiting = gate.opened();
  gate.fail();
  expect([await waiting, await gate.opened(), gate.isOpen]).toEqual([false, false, false]);
});

test("a request does not wait longer than the limit", async () => {
  const gate = createGate(1);
  expect(await gate.opened()).toBe(false);
  expect(gate.isOpen).toBe(false);
});
