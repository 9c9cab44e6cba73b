import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { beforeDeadline } from '../deadline.ts'
import { checkedLookup, type Wire } from './connection.ts'
import { hostOf, portOf, type Policy } from './target.ts'

/** What a site shows before anything is asked of it; times ISO 8601. */
export interface Certificate {
  readonly valid: boolean
  /** Why it is not valid, as Node.js and OpenSSL name it: `CERT_HAS_EXPIRED`. */
  readonly error: string | null
  readonly issuer: string | null
  readonly subject: string | null
  readonly validFrom: string | null
  readonly validTo: string | null
  readonly names: readonly string[]
  readonly protocol: string | null
}

const MS = 5000

/** Reads the certificate of a host, valid or not, without a request. Undefined when there is none. */
export async function showCertificate(
  url: URL,
  policy: Policy,
  wire: Wire,
  signal: AbortSignal,
): Promise<Certificate | undefined> {
  const [host, port] = [hostOf(url), portOf(url)]
  if (isIP(host) !== 0) return undefined
  try {
    return await beforeDeadline(signal, MS, (limit) => handshake(host, port, limit, policy, wire))
  } catch {
    return undefined
  }
}

function handshake(
  host: string,
  port: number,
  signal: AbortSignal,
  policy: Policy,
  wire: Wire,
): Promise<Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: wire.divert?.(port).port ?? port,
      servername: host,
      lookup: checkedLookup(host, port, policy, wire),
      // Looked at, not believed: nothing is sent and nothing is read.
      rejectUnauthorized: false,
      ...(wire.ca === undefined ? {} : { ca: wire.ca }),
    })
    const end = (): void => void socket.destroy()
    signal.addEventListener('abort', end, { once: true })
    socket.once('close', () => reject(new Error('closed before a certificate was shown')))
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      const shown = socket.getPeerCertificate()
      const fault: unknown = socket.authorizationError
      const code = typeof fault === 'string' ? fault : codeOf(fault)
      resolve({
        valid: socket.authorized,
        error: socket.authorized ? null : (code ?? 'UNKNOWN'),
        issuer: first(shown.issuer?.O) ?? first(shown.issuer?.CN),
        subject: first(shown.subject?.CN),
        validFrom: instant(shown.valid_from),
        validTo: instant(shown.valid_to),
        names: (shown.subjectaltname ?? '')
          .split(', ')
          .flatMap((name) => (name.startsWith('DNS:') ? [name.slice(4, 260)] : [])),
        protocol: socket.getProtocol(),
      })
      socket.destroy()
    })
  })
}

function codeOf(fault: unknown): string | undefined {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : undefined
}

function first(value: string | readonly string[] | undefined): string | null {
  const text = typeof value === 'string' ? value : value?.[0]
  return text?.slice(0, 200) ?? null
}

function instant(text: string | undefined): string | null {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}
