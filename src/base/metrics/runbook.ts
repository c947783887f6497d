/** Folder of the runbook's pages in an installed package. The base address of a site can replace it. */
export const runbookAddress = "node_modules/keelson/docs/runbook/";

/** Page of docs/runbook, without `.md`, that explains an alarm to operators. */
export type RunbookPage =
  | "configuration-unavailable"
  | "dead-letters"
  | "flooding-tenant"
  | "function-errors"
  | "late-events"
  | "lossy-shutdown"
  | "schedule-gave-up"
  | "server-errors"
  | "set-aside"
  | "stuck-step"
  | "tenant-wall"
  | "throttling"
  | "unknown-commit";

/** Returns the description of an alarm: one sentence, and the address of its page. */
export function alarmDescription(says: string, page: RunbookPage): string {
  return `${says} See ${runbookAddress}${page}.md`;
}
