/** A spreadsheet takes what begins like this for a formula, and would run it. */
const FORMULA = /^[=+\-@\t\r]/

/** One line of CSV (RFC 4180), without its end: what looks like a formula is made text by an apostrophe. */
export function csvLine(cells: readonly string[]): string {
  return cells.map(csvCell).join(',')
}

function csvCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
