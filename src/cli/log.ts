import type { AccessRecord, Observe } from '../engine/base/access-record.ts'
import { ERRORS, Failure, LedgerError } from '../engine/base/errors.ts'
import { asciiJson } from '../engine/base/json.ts'
import { formatShort } from '../engine/base/money.ts'
import type { Env } from '../env.ts'
import type { Terminal } from './command.ts'

/** Lines are written together when this many bytes are waiting, or after this time. */
const TOGETHER_BYTES = 16_384
const FLUSH_MS = 500
/** Limit of unwritten bytes; later lines are dropped, since a log must neither stop a service nor fill its memory. */
const KEPT_BYTES = 16 * 1024 * 1024
/** More than the end of a line ever has: each character of a detail may take six bytes. */
const LONGEST_END = 2_048
const LONGEST_DETAIL = 300

/** How long a reader may take for the last lines. */
const CLOSE_MS = 1_000

const STDERR = 2

/** The log of requests. */
export interface Log {
  readonly observe: Observe
  /** Resolves when every line is written, or nobody reads them. */
  close(): Promise<void>
}

/**
 * The access log: one line per request on stderr, JSON for a program, a short one for a person. Undefined at LOG_LEVEL=silent. What a line
 * holds is in `Access`: nothing that was asked, sent or paid with. `hide` removes addresses and keys.
 */
export async function openLog(
  level: Env['logLevel'],
  { err, logReader }: Pick<Terminal, 'err' | 'logReader'>,
  hide: (text: string) => string,
): Promise<Log | undefined> {
  if (level === 'silent') return undefined
  const wanted = LEVELS.slice(LEVELS.indexOf(level))
  if (logReader === 'person')
    return {
      observe: (access) => {
        if (wanted.includes(levelOf(access))) err(hide(shortLine(access)))
      },
      close: async () => undefined,
    }
  const { write, close } = await openStderr()
  const time = isoTime()
  // A line of pino's own costs a tenth of an unpaid answer: what repeats is written out once, and there are no more kinds
  // of lines than the catalog allows.
  const kinds = new Map<string, Kind[]>()
  const observe = (access: AccessRecord): void => {
    const { place, ms, payment, detail } = access
    let known = kinds.get(place)
    if (known === undefined) kinds.set(place, (known = []))
    let kind = known.find(({ like }) => isLike(like, access))
    if (kind === undefined) {
      kind = { like: access, begin: wanted.includes(levelOf(access)) ? repeated(access) : undefined }
      known.push(kind)
    }
    if (kind.begin === undefined) return
    const paid = payment === undefined ? '' : `,"payment":${JSON.stringify(payment)}`
    const why = detail === undefined ? '' : `,"detail":${asciiJson(hide(detail).slice(0, LONGEST_DETAIL))}`
    write(kind.begin, `,"ms":${ms}${paid}${why},"time":"${time()}"}\n`)
  }
  return { observe, close }
}

/** Lines of one place that differ in their end only. */
interface Kind {
  readonly like: AccessRecord
  /** Undefined: they are below the level. */
  readonly begin: Buffer | undefined
}

function isLike(one: AccessRecord, other: AccessRecord): boolean {
  return (
    one.outcome === other.outcome &&
    one.method === other.method &&
    one.status === other.status &&
    one.cached === other.cached &&
    one.price === other.price
  )
}

/**
 * Writes lines of two parts, many at a time. They become bytes at once: text that is strung together and kept for a while
 * costs more than all the rest.
 */
async function openStderr(): Promise<
  Pick<Log, 'close'> & { readonly write: (begin: Buffer, end: string) => void }
> {
  const { pino } = await import('pino')
  const destination = pino.destination({
    fd: STDERR,
    sync: false,
    maxLength: KEPT_BYTES,
  })
  destination.on('error', () => undefined)
  const page = Buffer.allocUnsafe(TOGETHER_BYTES)
  let used = 0
  const turn = (): void => {
    if (used > 0) destination.write(page.toString('utf8', 0, used))
    used = 0
  }
  setInterval(turn, FLUSH_MS).unref()
  // Lets pino write the remaining lines at every end of the process except SIGKILL.
  process.prependListener('exit', turn)
  return {
    write: (begin, end) => {
      if (used + begin.length + LONGEST_END > TOGETHER_BYTES) turn()
      used += begin.copy(page, used)
      used += page.write(end, used, 'latin1')
    },
    // A write that is under way when the process exits is lost.
    close: () =>
      new Promise((resolve) => {
        turn()
        const timer = setTimeout(resolve, CLOSE_MS)
        destination.once('close', () => {
          clearTimeout(timer)
          resolve()
        })
        destination.end()
      }),
  }
}

/** Many requests come within a millisecond: its name is spelled once. */
function isoTime(): () => string {
  let last = 0
  let spelled = ''
  return () => {
    const now = Date.now()
    if (now !== last) spelled = new Date(now).toISOString()
    last = now
    return spelled
  }
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Bugs are errors; failing sources and unacceptable payments are warnings. */
function levelOf({ status, outcome }: AccessRecord): 'info' | 'warn' | 'error' {
  if (outcome === 'internal') return 'error'
  return status >= 500 ? 'warn' : 'info'
}

/** All of a line but its end. */
function repeated(access: AccessRecord): Buffer {
  const { place, method, status, outcome, price, cached } = access
  const fields = {
    level: levelOf(access),
    method,
    route: place,
    status,
    outcome,
    ...(price === undefined ? {} : { price: formatShort(price) }),
    ...(cached === undefined ? {} : { cache: cached ? 'hit' : 'miss' }),
  }
  return Buffer.from(JSON.stringify(fields).slice(0, -1))
}

function shortLine({
  place,
  method,
  status,
  outcome,
  detail,
  price,
  cached,
  ms,
  payment,
}: AccessRecord): string {
  const words = [
    String(status),
    method,
    place,
    outcome === 'ok' ? '' : ERRORS[outcome].title.toLowerCase(),
    detail === undefined ? '' : `(${detail})`,
    price === undefined ? '' : `$${formatShort(price)}`,
    cached === true ? 'cached' : '',
    `${ms} ms`,
    payment ?? '',
  ]
  return words.filter((word) => word !== '').join('  ')
}

/** Interval in which the same error is reported once: an unreachable store fails every request. */
const QUIET_MS = 30_000

/**
 * Reports errors outside of requests to the operator: bugs with their stack, others in one line. `hide` removes
 * addresses and keys that libraries and handlers put into their messages.
 */
export function createErrorReporter(
  { err }: Pick<Terminal, 'err'>,
  now: () => number,
  hide: (text: string) => string,
): (fault: unknown) => void {
  const reportedAt = new Map<string, number>()
  return (fault) => {
    const text = hide(
      fault instanceof LedgerError
        ? `ledger: ${fault.message}`
        : fault instanceof Failure
          ? fault.message
          : `unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`,
    )
    for (const [line, at] of reportedAt) if (now() - at >= QUIET_MS) reportedAt.delete(line)
    if (reportedAt.has(text)) return
    reportedAt.set(text, now())
    err(text)
  }
}
