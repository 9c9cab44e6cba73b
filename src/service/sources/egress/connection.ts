import { isIP, type LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import { buildConnector } from 'undici'
import { hostOf, isAllowed, mayConnect, portOf, type Policy } from './target.ts'

/** How names are resolved, and where connections end that would leave a closed world. */
export interface Wire {
  /** All addresses of a name, IPv4 first; none when it does not exist. Rejects when that cannot be determined. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** Leads every connection elsewhere, after all checks: for a sandbox without a network. */
  readonly divert?: (port: number) => { readonly address: string; readonly port: number }
  /** Certificates of authorities to believe besides those of the system, as PEM. */
  readonly ca?: string
}

/** The name leads to an address that callers may not reach, or to none. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

const CONNECT_MS = 5000

/** Opens the connection of one request; the addresses that are checked are the ones that are connected to. */
export function connectorTo(url: URL, policy: Policy, wire: Wire): buildConnector.connector {
  const [host, port] = [hostOf(url), portOf(url)]
  const there = wire.divert?.(port)
  const connect = buildConnector({
    timeout: CONNECT_MS,
    lookup: checkedLookup(host, port, policy, wire),
    autoSelectFamily: true,
    ...(wire.ca === undefined ? {} : { ca: wire.ca }),
  })
  return (options, callback) => {
    // No lookup is made for a literal.
    if (isIP(host) !== 0 && !mayConnect(host, port, policy)) return callback(new AddressRefused(), null)
    const hostname = there !== undefined && isIP(host) !== 0 ? there.address : host
    const servername = isIP(host) === 0 ? { servername: host } : {}
    connect({ ...options, ...servername, hostname, port: String(there?.port ?? port) }, callback)
  }
}

/** For connections to one host and port: the name given to it is the host's. */
export function checkedLookup(host: string, port: number, policy: Policy, wire: Wire): LookupFunction {
  const find = callbackify(addressesOf)
  return (_name, { family, all }, callback) =>
    find(host, port, policy, wire, (fault, addresses) => {
      const found = addresses
        ?.map((address) => ({ address, family: isIP(address) }))
        .filter((each) => (family !== 4 && family !== 6) || each.family === family)
      const first = found?.[0]
      if (found === undefined || first === undefined) callback(fault ?? new AddressRefused(), '', 0)
      else if (all === true) callback(null, found)
      else callback(null, first.address, first.family)
    })
}

async function addressesOf(
  host: string,
  port: number,
  policy: Policy,
  { resolve, divert }: Wire,
): Promise<readonly string[]> {
  const addresses = await resolve(host)
  const open = isAllowed(host, port, policy)
  // One that is not public spoils them all: a mix points to DNS rebinding.
  if (!open && !addresses.every((address) => mayConnect(address, port, policy))) throw new AddressRefused()
  return divert === undefined || addresses.length === 0 ? addresses : [divert(port).address]
}
