const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * A date of a list as `YYYY-MM-DD`, `YYYY-MM` or `YYYY`, whichever is known: reads `23 Nov 1962`, `Nov 1962`,
 * `23/11/1962`, `00/00/1975`, `dd/mm/1975`, `1962-11-23` and what follows it. Anything else (`circa 1960`) stays as it is.
 */
export function isoDate(text: string): string {
  const said = text.trim()
  const [, day, name = '', year] = /^(?:(\d{1,2})[ -])?([A-Za-z]{3})[a-z]*[ -](\d{4})$/.exec(said) ?? []
  const month = MONTHS.indexOf(name.toLowerCase()) + 1
  if (year !== undefined && month > 0) return partsOf(year, month, Number(day ?? 0))
  const slashed = /^(\d{1,2}|dd)\/(\d{1,2}|mm)\/(\d{4})$/i.exec(said)
  if (slashed !== null) return partsOf(slashed[3] ?? '', Number(slashed[2]) || 0, Number(slashed[1]) || 0)
  return /^\d{4}(?:-\d{2}(?:-\d{2})?)?(?=$|T|[+]|Z)/.exec(said)?.[0] ?? said
}

/** The day a list says it is of; null for anything that is no date. */
export function publicationDay(text: string | undefined): string | null {
  const day = isoDate(text ?? '')
  return /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day)) ? day : null
}

/** The American order, `11/18/2026`. */
export function fromAmerican(text: string | undefined): string | undefined {
  return text?.replace(/^(\d{1,2})\/(\d{1,2})\/(\d{4})$/, '$2/$1/$3')
}

function partsOf(year: string, month: number, day: number): string {
  const two = (number: number): string => String(number).padStart(2, '0')
  if (month === 0) return year
  return day === 0 ? `${year}-${two(month)}` : `${year}-${two(month)}-${two(day)}`
}
