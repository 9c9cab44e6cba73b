import { systemRuntime } from '../../engine/base/runtime.ts'

/** Longer than any document takes. */
export const PATIENCE_MS = 20_000

export type Visit =
  | {
      readonly kind: 'answer'
      readonly status: number
      /** Media type without its parameters. */
      readonly type: string
      readonly headers: Headers
      readonly text: string
    }
  /** A phrase that follows the address. */
  | { readonly kind: 'fault'; readonly reason: string }

interface VisitOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends one request without redirects. The path may come from the service: it must not lead to another host. */
export async function visit(origin: string, path: string, options: VisitOptions = {}): Promise<Visit> {
  if (!path.startsWith('/')) return { kind: 'fault', reason: 'no path, and not asked' }
  const first = await send(origin, path, options)
  // A server may close an idle connection just as a request is sent on it (RFC 9112 §9.5). No request pays for anything.
  return first.kind === 'fault' && first.reason === CLOSED ? send(origin, path, options) : first
}

async function send(
  origin: string,
  path: string,
  { method = 'GET', headers = {} }: VisitOptions,
): Promise<Visit> {
  try {
    const response = await systemRuntime.fetcher(origin + path, {
      method,
      headers: { Accept: 'application/json, */*;q=0.5', ...headers },
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
    return {
      kind: 'answer',
      status: response.status,
      type: type.trim().toLowerCase(),
      headers: response.headers,
      text: await response.text(),
    }
  } catch (fault) {
    return { kind: 'fault', reason: reasonOf(fault) }
  }
}

/** Number of concurrent requests, as x402scan sends them. */
const CONCURRENT = 6

/** Runs requests in small groups; the answers are in the order of the items. */
export async function visitEach<T, R>(all: readonly T[], ask: (each: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = []
  for (let first = 0; first < all.length; first += CONCURRENT)
    answers.push(...(await Promise.all(all.slice(first, first + CONCURRENT).map(ask))))
  return answers
}

const CLOSED = 'the connection was closed before the answer'

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name server does not answer',
  ECONNRESET: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  ETIMEDOUT: 'no connection in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  HPE_INVALID_CONSTANT: 'the server there does not speak HTTP',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server there does not speak TLS: try http://',
}

/** Why there is no answer, phrased to follow the address. */
function reasonOf(fault: unknown): string {
  if (fault instanceof DOMException && fault.name === 'TimeoutError')
    return `no answer in ${PATIENCE_MS / 1000} seconds`
  const cause: unknown = fault instanceof Error ? fault.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'
  return (
    REASONS[code] ??
    (/CERT|TLS|SSL|UNABLE_TO_VERIFY/.test(code) ? `its certificate is not accepted (${code})` : code)
  )
}
