import { world } from '../../engine/internal.ts'

/** Longer than any document takes. */
const PATIENCE_MS = 20_000

export type Visit =
  | {
      readonly kind: 'answer'
      readonly status: number
      /** Media type without its parameters. */
      readonly type: string
      readonly header: (name: string) => string | undefined
      readonly text: string
    }
  /** In words that go on after the address. */
  | { readonly kind: 'fault'; readonly reason: string }

/** Asks once, follows nothing. The path may come from the service itself: it must not lead to another host. */
export async function visit(origin: string, path: string): Promise<Visit> {
  if (!path.startsWith('/')) return { kind: 'fault', reason: 'no path, and not asked' }
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const headers = { Accept: 'application/json, */*;q=0.5' }
    const response = await world.fetcher(origin + path, { redirect: 'manual', signal, headers })
    const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
    return {
      kind: 'answer',
      status: response.status,
      type: type.trim().toLowerCase(),
      header: (name) => response.headers.get(name) ?? undefined,
      text: await response.text(),
    }
  } catch (fault) {
    return { kind: 'fault', reason: reasonOf(fault) }
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name server does not answer',
  ECONNRESET: 'the connection was closed before the answer',
  UND_ERR_SOCKET: 'the connection was closed before the answer',
  ETIMEDOUT: 'no connection in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  HPE_INVALID_CONSTANT: 'what answers does not speak HTTP',
  ERR_SSL_WRONG_VERSION_NUMBER: 'what answers does not speak TLS: try http://',
}

/** Why there is no answer, in words that go on after the address. */
export function reasonOf(fault: unknown): string {
  if (fault instanceof DOMException && fault.name === 'TimeoutError')
    return `no answer in ${PATIENCE_MS / 1000} seconds`
  const cause: unknown = fault instanceof Error ? fault.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'
  return (
    REASONS[code] ??
    (/CERT|TLS|SSL|UNABLE_TO_VERIFY/.test(code) ? `its certificate is not accepted (${code})` : code)
  )
}
