import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Upstream } from '../catalog/catalog.ts'
import { isSentByCallers } from '../catalog/access.ts'
import { conceal } from './upstream-request.ts'

/** A credential that a caller has sent for the upstream. It leaves this object in a request to the upstream only. */
export class CallerCredential {
  readonly #headers: ReadonlyMap<string, string>
  /** Equal for equal credentials of one upstream. */
  readonly digest: string

  constructor(headers: ReadonlyMap<string, string>, url: string) {
    this.#headers = headers
    this.digest = hash('sha256', JSON.stringify([new URL(url).origin, ...headers]), 'base64url')
  }

  /** Puts the credential on a request. */
  sign({ headers }: { readonly headers: Headers }): void {
    for (const [name, value] of this.#headers) headers.set(name, value)
  }

  /** Removes the credential from a text, also without its scheme. */
  conceal(text: string): string {
    const values = [...this.#headers.values()]
    return conceal(text, [...values, ...values.map((value) => value.replace(/^\S+ +/, ''))])
  }
}

/** Finds the credential of a caller in the headers of a request; undefined: there is none. */
export type ReadCredential = (headers: IncomingHttpHeaders) => CallerCredential | undefined

/**
 * A caller sends what we send: the headers of the operator’s credential. An upstream may ignore other headers, and would
 * then serve everyone who sends them.
 */
export function credentialReader({ url, credential }: Upstream): ReadCredential | undefined {
  if (!isSentByCallers(credential)) return undefined
  const names =
    credential.kind === 'header'
      ? Object.keys(credential.values).map((name) => name.toLowerCase())
      : ['authorization']
  return (headers) => {
    const sent = names.flatMap((name): [string, string][] => {
      const value = headers[name]
      return typeof value === 'string' && isForUpstream(name, value, headers) ? [[name, value]] : []
    })
    return sent.length === 0 ? undefined : new CallerCredential(new Map(sent), url)
  }
}

/** A payment is no credential, and neither is a cookie that a page of another site makes a browser send. */
function isForUpstream(name: string, value: string, headers: IncomingHttpHeaders): boolean {
  if (name === 'authorization' && /(?:^|,)\s*payment(?:\s|$)/i.test(value)) return false
  if (name === 'cookie' && !SAME_SITE.has(headers['sec-fetch-site'] ?? 'none')) return false
  return value.trim() !== ''
}

const SAME_SITE: ReadonlySet<string> = new Set(['none', 'same-origin'])
