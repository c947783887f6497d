// Checks the English of README.md, docs/ and src/: findings of the patterns in wording/patterns.mjs per 1,000 words,
// and the openings and phrases of comments. `node scripts/wording.mjs [root] [--list]` exits with 1 above a bound;
// with --list it prints every finding.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { filesIn, textIn } from "./documents.mjs";
import { dialect, question, refused } from "./wording/patterns.mjs";
import { commentsOfModule, sentencesOfMarkdown, sentencesOfModule } from "./wording/prose.mjs";

/** Most findings per 1,000 words. */
const bounds = { documents: 2, sources: 5 };

/** A page with three findings or more may have three times as many; a module is too short for a bound. */
const ofPage = { least: 3, times: 3 };

/** Most comments in src/ that open with a question word. */
const mostQuestions = 100;

const args = process.argv.slice(2);
const isListed = args.includes("--list");
const root = args.find((arg) => !arg.startsWith("--")) ?? join(import.meta.dirname, "..");

const documents = ["README.md", ...filesIn(root, "docs/**/*.md")].filter((file) =>
  existsSync(join(root, file)),
);
const sources = filesIn(root, "src/**/*.ts").filter((file) => !file.endsWith(".test.ts"));

const wrong = [
  ...above(
    "README.md and docs",
    documents,
    (_, text) => sentencesOfMarkdown(text),
    bounds.documents,
  ),
  ...above("src", sources, sentencesOfModule, bounds.sources),
  ...comments(),
];
console.log(wrong.length === 0 ? "wording: clean" : wrong.join("\n"));
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Returns the lines to print if the files have more findings than the bound: in all, or one page. */
function above(name, group, read, bound) {
  const counted = group.map((file) => {
    const sentences = read(file, textIn(root, file));
    const findings = sentences.flatMap(({ line, words }) =>
      dialect.flatMap(([pattern, instead]) => {
        const [phrase] = pattern.exec(words) ?? [];
        return phrase === undefined ? [] : [`${file}:${line} "${phrase.trim()}": write ${instead}`];
      }),
    );
    return { file, findings, words: sentences.flatMap(({ words }) => words.split(/\s+/)).length };
  });
  const all = {
    file: name,
    findings: counted.flatMap(({ findings }) => findings),
    words: counted.reduce((sum, { words }) => sum + words, 0),
  };
  if (isListed) console.log([...all.findings, rate(all)].join("\n"));
  if (perThousand(all) > bound) return [...all.findings, `${rate(all)}, more than ${bound}`];
  const most = ofPage.times * bound;
  return counted
    .filter(({ file }) => file.endsWith(".md"))
    .filter((one) => one.findings.length >= ofPage.least && perThousand(one) > most)
    .flatMap((one) => [...one.findings, `${rate(one)}, more than ${most}`]);
}

function perThousand({ findings, words }) {
  return (findings.length * 1_000) / Math.max(words, 1);
}

function rate(counted) {
  return `${counted.file}: ${perThousand(counted).toFixed(1)} findings per 1,000 words`;
}

/** Returns the comments of the sources that are refused. */
function comments() {
  const all = sources.flatMap((file) =>
    commentsOfModule(file, textIn(root, file)).map(({ words, line }) => ({
      words,
      place: `${file}:${line}`,
    })),
  );
  const questions = all.filter(({ words }) => question.test(words));
  return [
    ...all.flatMap(({ words, place }) =>
      refused.flatMap(([pattern, instead]) => {
        const [phrase] = pattern.exec(words) ?? [];
        return phrase === undefined ? [] : [`${place} "${phrase.trim()}": write ${instead}`];
      }),
    ),
    ...(questions.length > mostQuestions
      ? [
          `${questions.length} comments open with What, Who, Whose, Where or How, more than ${mostQuestions}:`,
          ...questions.map(({ words, place }) => `  ${place} ${words.slice(0, 80)}`),
        ]
      : []),
  ];
}
