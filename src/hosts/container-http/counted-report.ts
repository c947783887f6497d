/** How often something is reported at most, in milliseconds. */
const reportMs = 10_000;

/** Reports what may come in floods: the first at once, then how many there were, now and then. */
export function countedReport(report: (count: number) => void): (count: number) => void {
  let counted = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    timer = undefined;
    if (counted === 0) return;
    report(counted);
    counted = 0;
    timer = setTimeout(flush, reportMs).unref();
  };
  return (count) => {
    counted += count;
    if (timer === undefined) flush();
  };
}
