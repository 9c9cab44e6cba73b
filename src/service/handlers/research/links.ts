/**
 * An address as readers and programs make links of: with a scheme, also one that needs no host, with `www.`, or a name
 * with a path, a query or a port behind it, or one of three labels and more, which can carry a message as well.
 */
const LINK =
  /\b(?:[a-z][a-z0-9+.-]{1,20}:\/\/|(?:javascript|data|mailto):)[^\s<>"')\]。、，；）]+|\bwww\.[^\s<>"')\]。、，；）]+|\b(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?:\/|[?#](?=[\w%])|:\d)[^\s<>"')\]。、，；）]*|\b(?:[a-z0-9-]{1,63}\.){2,8}[a-z]{2,24}\b/gi

/**
 * Removes addresses other than the known ones: a model that has read a hostile page must not lead anybody elsewhere,
 * since an address can carry away what was read.
 */
export function withoutLinks(text: string, known: (address: string) => boolean): string {
  return text.replaceAll(LINK, (found) => {
    const address = found.replace(/[.,;:!?…]+$/, '')
    return known(address) ? found : `(link removed)${found.slice(address.length)}`
  })
}
