import { createServer } from "node:http";

/** A payment provider: `POST /<account>` charges it, once for each `Idempotency-Key`; `GET /<account>` returns the number of charges. */
const accounts = new Map();

const server = createServer((request, response) => {
  const name = String(request.url).slice(1);
  const account = accounts.get(name) ?? { charges: 0, byKey: new Map() };
  accounts.set(name, account);
  const answer = (body) =>
    response.setHeader("content-type", "application/json").end(JSON.stringify(body));
  if (request.method === "GET")
    return answer({ charges: account.charges, keys: account.byKey.size });
  const key = request.headers["idempotency-key"];
  const known = key === undefined ? undefined : account.byKey.get(key);
  if (known !== undefined) return answer(known);
  account.charges += 1;
  const charge = { id: `${name}-${account.charges}` };
  if (key !== undefined) account.byKey.set(key, charge);
  return answer(charge);
});
server.listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
