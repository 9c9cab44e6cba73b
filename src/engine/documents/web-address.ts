/** An address that a link may have, else the empty text: the catalog could hold `javascript:` too. */
export function webAddress(url: string | undefined): string {
  return url !== undefined && /^https?:\/\/[^\s<>"]+$/i.test(url) ? url : ''
}
