type Defined<Members> = {
  readonly [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name];
} & {
  readonly [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Exclude<
    Members[Name],
    undefined
  >;
};

/** Copies the members that are not `undefined`, so that the others are absent. */
export function defined<Members extends object>(members: Members): Defined<Members> {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Defined<Members>; // safe: each is one of the given members
}
