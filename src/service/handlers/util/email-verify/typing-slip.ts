import { isPublicName } from '../../../sources/public-suffix.ts'
import { ENDING_SLIPS, FREE_PROVIDERS, NO_SLIPS, OFTEN_MISTYPED } from '../../../data/mail-domains.ts'

/**
 * The domain that was probably meant; undefined when the one that was written looks right. A domain whose ending does
 * not exist is compared with every free provider, any other with the few that are often mistyped.
 *
 * @example
 * suggestDomain('gmial.con') // 'gmail.com'
 * suggestDomain('laposte.nett') // 'laposte.net'
 */
export function suggestDomain(domain: string): string | undefined {
  if (FREE_PROVIDERS.has(domain) || NO_SLIPS.has(domain)) return undefined
  const isReal = isPublicName(domain)
  const [name, ending] = split(domain)
  const often = OFTEN_MISTYPED.find((meant) => {
    const [rightName, rightEnding] = split(meant)
    if (ending === rightEnding) return slips(name, rightName) <= (rightName.length > 6 ? 2 : 1)
    if (ENDING_SLIPS[rightEnding]?.includes(ending) !== true) return false
    // mail.co is a name of its own, mail.con is not.
    return slips(name, rightName) <= (isReal ? 0 : 1)
  })
  if (often !== undefined) return often
  // The often mistyped names under the endings of other countries, too: hotmial.co.uk, yaho.fr.
  return onlyOne(
    [...FREE_PROVIDERS].filter(
      (meant) =>
        slips(domain, meant) === 1 && (!isReal || (isOftenMistyped(meant) && sharesEnding(domain, meant))),
    ),
  )
}

function onlyOne([first, ...others]: readonly string[]): string | undefined {
  return others.length === 0 ? first : undefined
}

function isOftenMistyped(domain: string): boolean {
  const dot = domain.indexOf('.')
  return OFTEN_MISTYPED.some((often) => often.startsWith(domain.slice(0, dot + 1)))
}

function sharesEnding(one: string, other: string): boolean {
  return one.slice(one.indexOf('.')) === other.slice(other.indexOf('.'))
}

function split(domain: string): readonly [string, string] {
  const dot = domain.lastIndexOf('.')
  return [domain.slice(0, dot), domain.slice(dot + 1)]
}

/** How many letters were left out, added, changed, or swapped with the next (optimal string alignment). */
function slips(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return 3
  let [before, last] = [[] as number[], Array.from({ length: other.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1]
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      row[j] = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[j - 2] ?? 0) + 1 : Infinity,
      )
    }
    ;[before, last] = [last, row]
  }
  return last[other.length] ?? 0
}
