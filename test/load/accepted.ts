// Loaded into an instance with `--import`: says as it ends which connections it accepted, by the ports of its clients. Those that
// the kernel had for it and reset as the listener closed are not among them.
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

const ports: (number | undefined)[] = [];
subscribe("net.server.socket", (message) => {
  ports.push((message as { socket: Socket }).socket.remotePort); // safe: so says Node's documentation of the channel
});
process.on("exit", () =>
  process.stdout.write(`${JSON.stringify({ msg: "load.accepted", ports })}\n`),
);
