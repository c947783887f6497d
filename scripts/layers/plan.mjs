/**
 * The folders of src/ from the top to the bottom: files import from their own folder and from those below it. A folder within a
 * folder has a line of its own; `.` are the files of src/ itself.
 */
export const folders = [
  ".",
  "testing",
  "cli",
  "cli/doctor",
  "client",
  "container",
  "lambda",
  "embedded",
  "claim-layer",
  "server",
  "routes",
  "admin",
  "aws",
  "run",
  "delivery",
  "declare",
  "events",
  "http",
  "once",
  "config",
  "identity",
  "log",
  "context",
  "process",
  "errors",
];
