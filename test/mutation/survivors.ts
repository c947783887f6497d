/** Changes of one line that no test can notice, or should, and why. */
export interface Survivor {
  readonly file: string;
  /** As it stands in the file, without its indentation. */
  readonly line: string;
  /** As `npm run mutate` prints them. */
  readonly changes: readonly string[];
  readonly why: string;
}

export const survivors: readonly Survivor[] = [
  {
    file: "step.ts",
    line: 'return isHeld && judge(claim, "", nowMs) === "running" ? "running" : "unknown";',
    changes: ['"" -> "Stryker was here!"'],
    why: "an owner that no claim has, whichever",
  },
  {
    file: "cascade.ts",
    line: 'if (bounds === undefined || outside === undefined || source === "app-override") return { value, source };',
    changes: ["bounds === undefined -> false"],
    why: "without bounds nothing is outside: the comparison is for the compiler",
  },
  {
    file: "cascade.ts",
    line: 'const asItIs = source === "system-row" || (source === "computed" && scope === "system");',
    changes: ['source === "computed" -> true'],
    why: "a system key has no other level that is held to bounds",
  },
  {
    file: "request-parameter.ts",
    line: "if (original === undefined || definition.bounds === undefined) return undefined;",
    changes: ["definition.bounds === undefined -> false"],
    why: "a number without bounds is refused before: the comparison is for the compiler",
  },
  {
    file: "request-parameter.ts",
    line: 'return typeof number === "number" && Number.isFinite(number) ? number : undefined;',
    changes: ['typeof number === "number" -> true'],
    why: "only numbers are finite: the comparison is for the compiler",
  },
  {
    file: "rows.ts",
    line: "if (/^[\\w.:@-]{0,256}$/.test(id)) return id;",
    changes: ["/^[\\w.:@-]{0,256}$/.test(id) -> false", "/^[\\w.:@-]{0,256}$/ -> /^[\\w.:@-]$/"],
    why: "a shortcut: what it lets through is escaped to itself",
  },
  {
    file: "target.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the line has it
    line: 'const level = rowLevels("user", owner).find(({ source }) => source === `${scope}-row`);',
    changes: ['"user" -> ""'],
    why: "for rows a key is a user's where it is neither the system's nor a tenant's",
  },
  {
    file: "lifecycle.ts",
    line: "if (deadlines === undefined || hasEnded) return undefined;",
    changes: ["deadlines === undefined -> false"],
    why: "before the shutdown no state has a deadline: the comparison is for the compiler",
  },
  {
    file: "route-table.ts",
    line: 'if (!entry.route.segments.some((segment) => "param" in segment)) withoutParams.set(entry.route.pattern, node);',
    changes: [
      '!entry.route.segments.some((segment) => "param" in segment) -> false',
      "withoutParams.set(entry.route.pattern, node); -> ;",
    ],
    why: "a shortcut: without it the tree answers the same",
  },
  {
    file: "route-table.ts",
    line: 'const direct = basePath === "" ? withoutParams.get(path)?.byMethod.get(method) : undefined;',
    changes: ['basePath === "" -> false', '"" -> "Stryker was here!"'],
    why: "a shortcut: without it the tree answers the same",
  },
  {
    file: "route-table.ts",
    line: 'if (direct !== undefined) return { kind: "found", target: direct.target, params: Object.create(null), head: false };',
    changes: ["direct !== undefined -> false"],
    why: "a shortcut: without it the tree answers the same",
  },
  {
    file: "route-table.ts",
    line: "if (nodes.length === 0) break;",
    changes: ["nodes.length === 0 -> false"],
    why: "a shortcut: from no node nothing is reached",
  },
  {
    file: "route-table.ts",
    line: 'const part = parts[index] ?? "";',
    changes: ['"" -> "Stryker was here!"'],
    why: "for the compiler alone: a route that matched has as many segments as there are parts",
  },
  {
    file: "route-table.ts",
    line: "return (first === dot || first === percent) && /^(\\.|%2e){1,2}$/i.test(part);",
    changes: ["first === dot || first === percent -> true"],
    why: "a shortcut: the expression begins with one of them",
  },
  {
    file: "route-table.ts",
    line: 'return part.includes("%") ? decodeURIComponent(part) : part;',
    changes: ['"%" -> ""'],
    why: "a shortcut: without % a part is decoded to itself",
  },
  {
    file: "route-table.ts",
    line: 'if (!path.includes("%")) return true;',
    changes: ['!path.includes("%") -> false', '"%" -> ""'],
    why: "a shortcut: without % there is nothing malformed",
  },
  {
    file: "route-table.ts",
    line: "} catch {",
    changes: ["{ return false; } -> {}"],
    why: "undefined is as false as false",
  },
  {
    file: "route.ts",
    line: 'const [, method, pattern] = (typeof text === "string" && form.exec(text)) || [];',
    changes: ['[] -> ["Stryker was here"]'],
    why: "the first member is not looked at",
  },
  {
    file: "route.ts",
    line: "if (method === undefined || pattern === undefined) {",
    changes: [
      "method === undefined || pattern === undefined -> method === undefined && pattern === undefined",
      "method === undefined -> false",
      "pattern === undefined -> false",
    ],
    why: "the expression gives both or none: each comparison is for the compiler",
  },
  {
    file: "route.ts",
    line: "return first !== undefined && reserved.includes(first);",
    changes: ["first !== undefined -> true"],
    why: "no reserved name is undefined: the comparison is for the compiler",
  },
  {
    file: "proof.ts",
    line: 'if (typeof part === "number" && (!Number.isFinite(part) || Object.is(part, -0))) throw new TypeError("JSON would change it");',
    changes: ['"JSON would change it" -> ""'],
    why: "nobody reads it: of a message that came it means that its proof is wrong, and one that goes is JSON",
  },
  {
    file: "proof.ts",
    line: "return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)));",
    changes: ["one < other -> one <= other"],
    why: "no object has two members of one name",
  },
  {
    file: "redaction.ts",
    line: "if (remembered.size < maxRememberedNames && name.length <= maxRememberedLength) remembered.set(name, member);",
    changes: ["remembered.size < maxRememberedNames -> remembered.size <= maxRememberedNames"],
    why: "there is a bound: whether it is one name higher is nothing that is promised",
  },
  {
    file: "redaction.ts",
    line: "if (position.length === 0) return position;",
    changes: ["position.length === 0 -> false"],
    why: "a shortcut: from nowhere no path goes on",
  },
  {
    file: "redaction.ts",
    line: "return position.length > 0 && position.some((node) => node.isEnd);",
    changes: ["position.length > 0 -> true", "position.length > 0 -> position.length >= 0"],
    why: "a shortcut: nowhere no path ends",
  },
  {
    file: "redaction.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the line has it
    line: 'return harmless.test(text) ? `"${text}"` : JSON.stringify(text).replace(hidden, escaped);',
    changes: ["harmless.test(text) -> false"],
    why: "a shortcut: JSON.stringify writes such a text the same",
  },
  {
    file: "redaction.ts",
    line: "export const harmless = /^[ !#-[\\]-~]*$/;",
    changes: ["/^[ !#-[\\]-~]*$/ -> /^[ !#-[\\]-~]$/"],
    why: "a shortcut: JSON.stringify writes a longer text the same",
  },
  {
    file: "redaction.ts",
    line: "const plain = name",
    changes: ["name .slice(-longestSecretEnd) -> name"],
    why: "bounds the work on a hostile name, not what comes of it",
  },
  {
    file: "check-command.ts",
    line: "if (only === undefined || !Object.hasOwn(members, only)) return undefined;",
    changes: ["only === undefined -> false"],
    why: "no action is named undefined: the comparison is for the compiler",
  },
  {
    file: "check-command.ts",
    line: "return isRecord(input) && check !== undefined ? { input, check } : undefined;",
    changes: ["check !== undefined -> true"],
    why: "what the members have of their own is a check: the comparison is for the compiler",
  },
  {
    file: "check-command.ts",
    line: 'let table = typeof name === "string" ? tables.get(name) : undefined;',
    changes: ['typeof name === "string" -> true'],
    why: "the tables are known by texts alone: the comparison is for the compiler",
  },
  {
    file: "expressions.ts",
    line: "if (kind === undefined) return undefined;",
    changes: ["kind === undefined -> false"],
    why: "an action of no kind is not sound, and refused as such: the comparison is for the compiler",
  },
  {
    file: "expressions.ts",
    line: 'const value = kind === "set" && isOneValue(rest.slice(1)) ? rest[1] : undefined;',
    changes: ['kind === "set" -> true'],
    why: "of the sound actions only those of SET have two tokens after the path",
  },
  {
    file: "expressions.ts",
    line: "/^[0-9]+$/.test(String(tokens[end + 1])) &&",
    changes: ["/^[0-9]+$/ -> /^[0-9]+/"],
    why: "a token that begins with a digit has digits only",
  },
  {
    file: "expressions.ts",
    line: "for (let at = begin; at < tokens.length; at++) {",
    changes: ["at < tokens.length -> at <= tokens.length"],
    why: "beyond the last token there is none, which is neither a parenthesis nor a keyword",
  },
  {
    file: "expressions.ts",
    line: 'while (at !== -1 && tokens[at]?.toUpperCase() === "AND") at = readOne(tokens, at + 1, conditions);',
    changes: ["at !== -1 -> true", "-1 -> +1"],
    why: "a shortcut: at -1 there is no token, and no condition ends at 1",
  },
  {
    file: "expressions.ts",
    line: 'return end !== -1 && tokens[end] === ")" ? end + 1 : -1;',
    changes: ["end !== -1 -> true", "-1 -> +1"],
    why: "a shortcut: at -1 there is no token, and no condition ends at 1 (the -1 that is returned is noticed)",
  },
  {
    file: "expressions.ts",
    line: 'if (!isName(third) || fourth !== "," || !isPlaceholder(fifth) || sixth !== ")") return -1;',
    changes: ["-1 -> +1"],
    why: "1 is no end of these tokens, and what stands there neither closes nor joins conditions that can be read",
  },
  {
    file: "expressions.ts",
    line: 'if (!["=", "<", "<=", ">", ">="].includes(second ?? "")) return -1;',
    changes: ['"" -> "Stryker was here!"'],
    why: "no comparison, whichever",
  },
  {
    file: "isolation.ts",
    line: 'const tables = tablesOf(input).map((name) => isWalled(tableOf(name) ?? ""));',
    changes: ['"" -> "Stryker was here!"'],
    why: "neither is the name of a table in DynamoDB",
  },
  {
    file: "check-command.ts",
    line: 'if (kind !== "set" || isNested || value === undefined)',
    changes: ['kind !== "set" -> false'],
    why: "only SET has a value: the others are refused for having none",
  },
  {
    file: "wall.ts",
    line: "const led = [...new Set([...(known?.led ?? []), partitionKey, ...partitions.values()])];",
    changes: ['[] -> ["Stryker was here"]'],
    why: "checks one more attribute, whose name no table uses: it lets nothing through",
  },
  {
    file: "schema-comparison.ts",
    line: "if (this.#steps > mostSteps) throw new TooComplexError();",
    changes: ["this.#steps > mostSteps -> this.#steps >= mostSteps"],
    why: "how many steps are too many is a guess",
  },
  {
    file: "shape-differences.ts",
    line: 'return rules && to.kind === "value" && canonical(to.value) === canonical(from.value);',
    changes: ['to.kind === "value" -> true'],
    why: "what is no value has none to compare: the comparison is for the compiler",
  },
  {
    file: "schema-shapes.ts",
    line: "if (level > mostLevels) throw new TooComplexError();",
    changes: ["level > mostLevels -> level >= mostLevels"],
    why: "how many levels are too many is a guess",
  },
  {
    file: "schema-shapes.ts",
    line: 'if (one.kind === "object" && other.kind === "object" && depth <= mostDiscriminators)',
    changes: [
      'one.kind === "object" && other.kind === "object" -> one.kind === "object" || other.kind === "object"',
      'one.kind === "object" -> true',
      'other.kind === "object" -> true',
    ],
    why: "both have one type: one of the comparisons is for the compiler",
  },
  {
    file: "schema-shapes.ts",
    line: "if (shapes.length > mostShapes) throw new TooComplexError();",
    changes: ["shapes.length > mostShapes -> shapes.length >= mostShapes"],
    why: "how many alternatives are too many is a guess",
  },
  {
    file: "shape.ts",
    line: 'if (shape.kind !== "object") return [];',
    changes: ['[] -> ["Stryker was here"]'],
    why: "a text is no answer that matters: neither false nor unknown",
  },
  {
    file: "shape.ts",
    line: 'export const unsureKeyword = "(unsure)";',
    changes: ['"(unsure)" -> ""'],
    why: "a keyword that no schema has, whichever",
  },
];
