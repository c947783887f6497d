/** Openings of a comment that are refused above a number: a noun or a verb reads faster. */
export const question = /^(?:What|Who|Whose|Where|How)\b/;

/** Phrases that no comment may contain, each with its replacement. */
export const refused = [
  [/\bis none\b/, "there is no ..."],
  [/\bmended\b/, "fixed"],
  [/\blets? (?:\w+ ){0,2}run\b/i, "runs"],
  [/\bwhoever\b/i, "the caller, the process ..."],
  [/(?:^|[.:;] )Who (?!is |are |was |has |can |may )/, "a noun"],
  [/\b(?:by|of|for|to|from|with|than) who\b/, "a noun"],
];

/**
 * Phrases that are typical of translated English, each with a plain replacement. They are counted in sentences, in which inline
 * code is `x`. A single one is not a mistake; many make a page hard to read.
 */
export const dialect = [
  // Clauses in place of nouns
  [
    /^(?:What|Whatever|Who|Whoever|Whose|Where|How) (?!to\b)(?!.*\?$)/,
    "start with a noun or a verb",
  ],
  [
    /(?<=[\w`,:;)] )what (?:is|was|were|has|had|can|cannot|comes|fails|runs|waits|follows|needs|remains|belongs)\b(?!.*\?$)/,
    "a noun: the messages that ...",
  ],
  [
    /(?<=[\w`,:;)] )what (?:an?|the|it|they|its|their|each|both) \w+(?!.*\?$)/,
    "a noun: the fields of ...",
  ],
  [
    /\b(?:whoever|whomever|(?:whatever|however (?:many|much|long)) (?:it|the|they|is|are))\b/i,
    "any, every",
  ],
  [
    /\b(?:says?|tells?|told) (?:so|how|why|who|whose|what|which|where|whether)\b/,
    "shows, describes, explains",
  ],
  [/\bof wh(?:om|ich)\b/, "two sentences"],
  [/\b(?:by|of|for|from|with|than|decides?|knows?|says?) who\b/, "the user who"],
  // Pronouns in place of nouns
  [/\b(?:no|some|every|any)body\b/i, "no client, an operator, every caller"],
  [/^(?:That|Those|None|Nothing) (?:of|in|with)\b/, "repeat the noun"],
  [
    /\b(?:is|are|was|were|be) (?:that|those|the ones?) (?:of|in|with|which|whose)\b/,
    "repeat the noun",
  ],
  [
    /\bof (?:its|their|your|his|our|my) own\b|\bof (?:yours|ours|theirs)\b/,
    "its own, your, separate",
  ],
  // Negations of the noun in place of the verb
  [/\b(?:is|are|was|were) none\b/, "there is no, does not exist"],
  [
    /\b(?:needs?|knows?|gets?|makes?|reads?|writes?|sends?|finds?|changes?) (?:no|none|nothing)\b/,
    "does not ...",
  ],
  [/\b(?:has|have) (?:none|nothing)\b/, "does not have"],
  [/(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|more)\w/, "is not a"],
  // Inversions and comparisons
  [/(?:^|\band )(?:so|nor) (?:is|are|do|does|has|have|can|did)\b/i, "X is also ..."],
  [/\bas (?:do|does|did|has|have|are|was|were|with) /, "like, in the same way as"],
  [/\balso (?:if|where|when|while|without|over|behind|of)\b/, "even if, including"],
  [/\bas (?:it|they) (?:is|are|was|were)(?=[.,;:)]|$)/, "unchanged"],
  [/\bwhere (?:it|they|one|no|none|this|these|there) \w+/, "if, when"],
  // Old or literal words
  [/\bmend(?:s|ed|ing)?\b/i, "fix"],
  [/\b(?:anew|beside|thereby|herewith)\b/i, "again, next to"],
  [
    /\b(?:lies?|lay|lying|stands?|stood) (?:in|on|at|below|above|under|behind)\b/,
    "is stored in, is below",
  ],
  [/\b(?:began|begun|begins)\b/, "started"],
  [/\bat once\b|\bat (?:most|least)(?=[.;:)]|$)/, "immediately, at the same time; at most three"],
  [/\b(?:a|one|each|its) texts?\b|\btexts\b/, "a string, a message"],
  [/\b(?:is|are|was|were) (?:gone|over|there)(?=[.,;:)]|$)/, "has expired, ends, exists"],
  [/\b(?:cannot|can|to) be had\b|[,;] else\b/, "is unavailable; otherwise"],
  [/\b(?:is|are|was|were) to be\b/, "must be"],
  [/\blet (?:through|run|in|go)\b/, "is allowed to"],
];
