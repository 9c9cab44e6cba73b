import { isIPv4, isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import { isPublicName } from '../../../sources/public-suffix.ts'

/** Why a text is no address of RFC 5321 §4.1.2, by what a reader would call it. */
export type Mistake =
  | 'too_long'
  | 'no_at_sign'
  | 'display_name'
  | 'local_part_empty'
  | 'local_part_too_long'
  | 'local_part_dots'
  | 'local_part_characters'
  | 'quotes'
  | 'domain_empty'
  | 'domain_characters'
  | 'domain_labels'
  | 'address_literal'

export interface Address {
  /** Without quotes where it needs none. */
  readonly local: string
  /** It needs quotes. */
  readonly quoted: boolean
  /** Takes a server that knows SMTPUTF8 (RFC 6531). */
  readonly international: boolean
  /** ASCII and lower case; an address literal keeps its brackets. */
  readonly domain: string
  readonly kind: 'public' | 'not_public' | 'literal'
}

const LONGEST = 254
const LONGEST_LOCAL = 64
const LONGEST_DOMAIN = 253
/** RFC 5322 §3.2.3, and by RFC 6531 letters, marks and numbers of every script. */
const ATOMS =
  /^[\w!#$%&'*+/=?^`{|}~\p{L}\p{M}\p{N}\p{S}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\p{L}\p{M}\p{N}\p{S}-]+)*$/u
const QUOTED = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/
const LABEL = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/

/** Takes an address apart by its grammar alone; white space around it does not count. */
export function readAddress(text: string): Address | Mistake {
  const address = text.trim()
  if (/<[^<>]*>$/.test(address)) return 'display_name'
  const at = address.startsWith('"') ? endOfQuotes(address) : address.lastIndexOf('@')
  if (at === undefined) return 'quotes'
  if (at < 0) return 'no_at_sign'
  const local = readLocal(address.slice(0, at))
  if (typeof local === 'string') return local
  const domain = readDomain(address.slice(at + 1))
  if (typeof domain === 'string') return domain
  // Counted as it would be sent (RFC 5321 §4.5.3.1.3, less the angle brackets).
  if (Buffer.byteLength(`${address.slice(0, at)}@${domain.domain}`) > LONGEST) return 'too_long'
  return { ...local, ...domain }
}

/** Position of the @ after a quoted string, which may contain others. */
function endOfQuotes(address: string): number | undefined {
  const [quoted] = /^"(?:[^"\\]|\\.)*"(?=@)/s.exec(address) ?? []
  return quoted?.length
}

type Local = Pick<Address, 'local' | 'quoted' | 'international'>

function readLocal(text: string): Local | Mistake {
  if (text === '' || text === '""') return 'local_part_empty'
  if (Buffer.byteLength(text) > LONGEST_LOCAL) return 'local_part_too_long'
  if (text.startsWith('"')) {
    if (!QUOTED.test(text)) return 'quotes'
    const plain = text.slice(1, -1).replace(/\\(.)/g, '$1')
    // A quoted string that needs no quotes is the same mailbox without them.
    return { local: ATOMS.test(plain) ? plain : text, quoted: !ATOMS.test(plain), international: false }
  }
  const local = text.normalize('NFC')
  if (ATOMS.test(local)) return { local, quoted: false, international: /[^\x20-\x7e]/.test(local) }
  return /^\.|\.\.|\.$/.test(local) ? 'local_part_dots' : 'local_part_characters'
}

type Domain = Pick<Address, 'domain' | 'kind'>

function readDomain(text: string): Domain | Mistake {
  if (text === '') return 'domain_empty'
  if (text.startsWith('[')) return readLiteral(text)
  // The URL standard would read more than a name: escapes, ports, numbers as addresses.
  if (!/^[\p{L}\p{M}\p{N}.-]+$/u.test(text)) return 'domain_characters'
  const labels = text.split('.')
  if (labels.some((label) => label === '')) return 'domain_labels'
  if (/^\p{N}+$/u.test(labels.at(-1) ?? '')) return 'domain_labels'
  const domain = domainToASCII(text)
  if (domain === '') return 'domain_characters'
  if (domain.length > LONGEST_DOMAIN || !domain.split('.').every((label) => LABEL.test(label)))
    return 'domain_labels'
  return { domain, kind: isPublicName(domain) ? 'public' : 'not_public' }
}

function readLiteral(text: string): Domain | Mistake {
  const [, v6, v4] = /^\[(?:IPv6:([^\]]+)|([^\]]+))\]$/i.exec(text) ?? []
  const isAddress = v6 === undefined ? isIPv4(v4 ?? '') : isIPv6(v6) && !v6.includes('%')
  return isAddress ? { domain: text, kind: 'literal' } : 'address_literal'
}
