import { isIP } from 'node:net'
import { isPublicName } from '../public-suffix.ts'
import { isPublicAddress } from './ip-address.ts'

/** Why an address that a caller names is not asked, each with the end of a sentence about it. */
export const REFUSALS = {
  malformed: 'is not a complete http or https address',
  scheme: 'must start with https:// or http://',
  length: 'is longer than 2048 characters',
  credentials: 'names a user or a password',
  port: 'names a port other than 80 and 443',
  name: 'names no host of the public Internet',
  // The same sentence for unknown names and internal addresses, so that nobody can map a network.
  address: 'leads to no public address',
  own: 'leads back to this service',
  robots: 'is closed to programs by the robots.txt of its site',
} as const

export type Refusal = keyof typeof REFUSALS

/** What callers may reach. */
export interface Policy {
  /** Names of this service: a call to itself would be unpaid and might recurse. */
  readonly own: readonly string[]
  /** `host:port` pairs that the operator allows, as names or addresses, IPv6 without brackets. */
  readonly allow: readonly string[]
}

const LONGEST_URL = 2048
const PORTS: ReadonlySet<number> = new Set([80, 443])

/** Reads what a caller wrote; the URL standard has brought every spelling of an IPv4 address into one form. */
export function readTarget(text: string): URL | Refusal {
  const trimmed = text.trim()
  if (trimmed.length > LONGEST_URL) return 'length'
  // The standard drops line breaks and tabs: what a reader sees would not be what is asked.
  if (/[\p{Cc}\s]/u.test(trimmed) || !URL.canParse(trimmed)) return 'malformed'
  return new URL(trimmed)
}

/** Checks the address alone; the addresses of a name are checked at the connection. */
export function refuseTarget(url: URL, policy: Policy): Refusal | undefined {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'scheme'
  if (url.username !== '' || url.password !== '') return 'credentials'
  if (url.href.length > LONGEST_URL) return 'length'
  const [host, port] = [hostOf(url), portOf(url)]
  if (policy.own.includes(host)) return 'own'
  if (isAllowed(host, port, policy)) return undefined
  if (!PORTS.has(port) && !policy.allow.some((entry) => entry.endsWith(`:${port}`))) return 'port'
  if (isIP(host) !== 0) return mayConnect(host, port, policy) ? undefined : 'address'
  return isPublicName(host) ? undefined : 'name'
}

/** Whether a connection may go to this address: asked for every address a name leads to. */
export function mayConnect(address: string, port: number, policy: Policy): boolean {
  return isAllowed(address, port, policy) || (PORTS.has(port) && isPublicAddress(address))
}

export function isAllowed(host: string, port: number, { allow }: Policy): boolean {
  return allow.includes(`${host}:${port}`)
}

/** Lower case, without the brackets of IPv6 and without final dots: `localhost.` is localhost. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')
}

export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}
