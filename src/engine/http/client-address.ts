import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Private address ranges: in X-Forwarded-For, further proxies of the operator. */
const INSIDE = new BlockList()
for (const [network, bits] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv6')
const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/**
 * The client of a request, as far as it can be known: an address, or the /64 of IPv6 that one subscriber has. Behind a
 * proxy it is the right-most address in X-Forwarded-For that is not private: the caller may have written what is left
 * of it. Undefined for this machine itself: its operator, or a proxy that is not trusted by a setting.
 */
export function clientOf(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  trustProxy: boolean,
): string | undefined {
  const peer = plain(socket.remoteAddress ?? '')
  const hops = trustProxy ? forwarded(headers['x-forwarded-for']) : []
  const client = hops.findLast((hop) => !isIn(INSIDE, hop) && !isIn(LOOPBACK, hop)) ?? hops.at(-1) ?? peer
  return client === '' || isIn(LOOPBACK, client) ? undefined : subscriber(client)
}

/** An entry that is not an address ends the list: no proxy wrote anything to its left. */
function forwarded(header: string | readonly string[] | undefined): string[] {
  const hops = [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map((hop) => plain(hop.trim()))
  return hops.slice(hops.findLastIndex((hop) => hop === '') + 1)
}

/** An address without brackets, port and zone, IPv4 in dotted form; empty for anything else. */
function plain(text: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  const address = bare.replace(/%.*$/, '')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  return isIP(mapped) === 0 ? '' : mapped
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function subscriber(address: string): string {
  if (isIP(address) !== 6) return address
  // The URL parser normalizes an address to its shortest form.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [left = '', right] = groups
  const known = left === '' ? [] : left.split(':')
  const rest = right === undefined || right === '' ? [] : right.split(':')
  const all =
    right === undefined ? known : [...known, ...Array(8 - known.length - rest.length).fill('0'), ...rest]
  return `${all.slice(0, 4).join(':')}::/64`
}
