import type { Template } from "./template.ts";

/** CloudFormation takes so many of each in one template. */
const most = { Parameters: 200, Resources: 500, Outputs: 200 } as const;
/** And so many bytes: in a call, and from a bucket. */
const [mostInlineBytes, mostBytes] = [51_200, 1_000_000];

/** What CloudFormation would say of a template's size. */
export interface SizeReport {
  /** It takes no such template. */
  readonly problems: readonly string[];
  /** It takes the template, in another way than the usual. */
  readonly notes: readonly string[];
}

/** Holds a template against the limits of CloudFormation. */
export function sizeReport(template: Template, text: string): SizeReport {
  const bytes = Buffer.byteLength(text);
  const counts = (["Parameters", "Resources", "Outputs"] as const).map((section) => ({
    section: section.toLowerCase(),
    count: Object.keys(template[section]).length,
    limit: most[section],
  }));
  const over = counts.filter(({ count, limit }) => count > limit);
  return {
    problems: [
      ...over.map(({ section, count, limit }) => `it has ${count} ${section}, and CloudFormation takes ${limit}`),
      ...(bytes > mostBytes ? [`it has ${bytes} bytes, and CloudFormation takes ${mostBytes}`] : []),
    ],
    notes:
      bytes > mostInlineBytes
        ? [`it has ${bytes} bytes; above ${mostInlineBytes} it is deployed from a bucket: aws cloudformation deploy --s3-bucket`]
        : [],
  };
}
