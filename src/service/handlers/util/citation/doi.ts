const SCHEME = /^(?:https?:\/\/)?(?:dx\.|www\.)?doi\.org\//i
const NAMED = /^(?:info:doi\/|urn:doi:|doi(?:\s*[:=]\s*|\s+))/i
const DOI = /^10\.\d{4,9}(?:\.\d+)*\/[^\s\p{C}]+$/u

/**
 * The DOI in what people write for one: with or without `doi:` or the address of a resolver, percent-encoded, between
 * quotes, at the end of a sentence. In lower case, for DOIs do not tell cases apart; undefined when there is none.
 *
 * @example
 * readDoi('<https://dx.doi.org/10.1038%2FNATURE14539>.') // '10.1038/nature14539'
 */
export function readDoi(text: string): string | undefined {
  const bare = text.trim().replace(/^[<"'“‘([{]+/u, '')
  const named = bare.replace(NAMED, '')
  const isAddress = SCHEME.test(named)
  const path = isAddress ? named.replace(SCHEME, '').replace(/[?#].*$/su, '') : named
  const doi = withoutEnd(isAddress || /^10\.[\d.]+%2F/i.test(path) ? decoded(path) : path)
  return DOI.test(doi) ? doi.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : undefined
}

/** The address at which a DOI is looked up by people; what an address cannot hold is encoded. */
export function doiAddress(doi: string): string {
  return `https://doi.org/${encodeURI(doi).replace(/[?#]/g, encodeURIComponent)}`
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

const PAIRS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{', '>': '<' }

/** Punctuation belongs to the sentence, and so do brackets that were not opened within. */
function withoutEnd(doi: string): string {
  const end = doi.at(-1) ?? ''
  const opening = PAIRS[end]
  const isForeign =
    opening === undefined ? /[.,;:!?"'”’]/u.test(end) : doi.split(opening).length < doi.split(end).length
  return isForeign ? withoutEnd(doi.slice(0, -1)) : doi
}
