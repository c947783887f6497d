/** Maximum number of groups remembered for each shard. Beyond it, every group is blocked. */
const maxGroups = 10_000;
/** Stands for every group. No group contains it. */
const every = "*";

/** Remembers that a job of the group stays, so that none of its later jobs is sent before it. */
export function block(blocked: Set<string>, group: string): void {
  blocked.add(blocked.size < maxGroups ? group : every);
}

export function isBlocked(blocked: ReadonlySet<string>, group: string): boolean {
  return blocked.has(every) || blocked.has(group);
}
