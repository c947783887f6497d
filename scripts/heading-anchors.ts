/** Returns the anchors of the headings of a page, as GitHub makes them. */
export function anchorsIn(text: string): string[] {
  return [...text.replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "").matchAll(/^#+ +(.*)$/gm)].map(
    ([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
  );
}
