/**
 * Pages as one range with an en dash and both ends in full, or as one page; other lists as they are. Null for what stands
 * in for pages that are not known yet.
 *
 * @example
 * pageRange('436-44') // '436–444'
 */
export function pageRange(pages: string | null): string | null {
  if (pages === null || /^(?:n\/?a|no|-+|0)(?:\s*[-–]\s*(?:n\/?a|no|0))?$/i.test(pages)) return null
  const [, start = '', end = ''] = /^(\w+)\s*[-‐‑–—−]+\s*(\w+)$/u.exec(pages) ?? []
  if (start === '') return pages.replace(/(?<=\d)-+(?=\d)/g, '–')
  const last =
    /^\d+$/.test(start + end) && end.length < start.length ? start.slice(0, -end.length) + end : end
  return last === start ? start : `${start}–${last}`
}
