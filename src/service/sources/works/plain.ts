import { decodeHTML } from 'entities'

/** Any element; a less-than sign before a space or a number is one. */
const ELEMENT = /<\/?[a-z][\w:.-]*(?:\s[^<>]*)?\/?>/gi
/** Those between which words end. */
const BLOCK = /<\/?(?:\w+:)?(?:p|br|title|sec|div|li|break)(?:\s[^<>]*)?\/?>/gi
/** What publishers escape instead of marking up. */
const ESCAPED = /<\/?(?:i|b|u|em|strong|sub|sup|scp|sc|tt|span|italic|bold)(?:\s[^<>]*)?\/?>/gi
/** Soft hyphens, spaces without width, and what turns the direction of a line. */
const UNSEEN = /[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069]/gu
const LONGEST = 10_000

/**
 * One line without markup: HTML, JATS and MathML as agencies hand them on, escaped once or twice. Undefined when nothing
 * is left.
 *
 * @example
 * plain('Reduction of CO<sub>2</sub> by <i>E. coli</i> &amp;amp; others') // 'Reduction of CO2 by E. coli & others'
 */
export function plain(text: string): string | undefined {
  const shown = decodeHTML(decodeHTML(text.slice(0, LONGEST).replace(BLOCK, ' ').replace(ELEMENT, '')))
  const line = shown
    .replace(ESCAPED, '')
    .replace(UNSEEN, '')
    .replace(/\p{Cs}/gu, '\ufffd')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  return line === '' ? undefined : line
}
