import type { AccessRecord, Observe } from '../engine/base/access-record.ts'
import { ERRORS, Failure, LedgerError } from '../engine/base/errors.ts'
import { asciiJson, type JsonObject } from '../engine/base/json.ts'
import { formatShort } from '../engine/base/money.ts'
import { CatalogError } from '../engine/catalog/issue.ts'
import type { Env } from '../env.ts'
import type { Terminal } from './command.ts'
import { painter } from './terminal-text.ts'

/** Lines are written together when this many bytes are waiting, or after this time. */
const TOGETHER_BYTES = 16_384
/** The same where several processes write to one pipe, which keeps so many bytes of a write together. */
const IN_ONE_PIECE_BYTES = 4_096
const FLUSH_MS = 500
/** Limit of unwritten bytes; later lines are dropped, since a log must neither stop a service nor fill its memory. */
const KEPT_BYTES = 16 * 1024 * 1024
/** More than the end of a line ever has: each character of a detail may take six bytes. */
const LONGEST_END = 2_304
const LONGEST_DETAIL = 300

/** How long a reader may take for the last lines. */
const CLOSE_MS = 1_000

const STDERR = 2

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

type Level = (typeof LEVELS)[number]

/** Something that happened to the process. */
export interface LogEvent {
  readonly level: Level
  /** What happened, for searches. */
  readonly event:
    'start' | 'listening' | 'reload' | 'reload_refused' | 'notice' | 'fault' | 'uncaught' | 'stop'
  /** The same for people. */
  readonly message: string
  readonly fields?: JsonObject
}

/** Everything that a running server says to its operator, on stderr: one line for each request and each event. */
export interface Log {
  readonly observe: Observe
  readonly write: (event: LogEvent) => void
  /** A warning of the engine. */
  readonly warn: (message: string) => void
  /** An error outside of requests, or a bug. */
  readonly error: (fault: unknown) => void
  /** Resolves when every line is written, or nobody reads them. */
  close(): Promise<void>
}

interface LogSettings extends Pick<Env, 'logLevel' | 'color' | 'hide'> {
  /** `shared`: other processes write to the same place. */
  readonly writer: 'alone' | 'shared'
  readonly terminal: Pick<Terminal, 'err' | 'logReader'>
  readonly now: () => number
}

/**
 * Lines are JSON for a program, short for a person. A line of a request holds nothing that was asked, sent or paid with;
 * `hide` removes addresses and keys from the rest.
 */
export async function openLog({ logLevel, color, hide, terminal, writer, now }: LogSettings): Promise<Log> {
  const wanted = logLevel === 'silent' ? [] : LEVELS.slice(LEVELS.indexOf(logLevel))
  const isWanted = (level: Level): boolean => wanted.includes(level)
  const isForPeople = terminal.logReader === 'person' || color === true
  const { observe, line, close } = isForPeople
    ? linesForPeople(terminal, isWanted, hide, color ?? true)
    : await linesForPrograms(isWanted, hide, terminal.err, writer)
  const write = (event: LogEvent): void => {
    if (isWanted(event.level) || isRefusal(event)) line(event)
  }
  return {
    observe,
    write,
    warn: (message) => write({ level: 'warn', event: 'notice', message }),
    error: createErrorReporter(write, now, hide),
    close,
  }
}

/** Why a server does not start: without it, an operator who wants no log would see nothing but an exit code. */
function isRefusal({ level, event }: LogEvent): boolean {
  return level === 'error' && event === 'start'
}

interface Lines extends Pick<Log, 'observe' | 'close'> {
  readonly line: (event: LogEvent) => void
}

function linesForPeople(
  { err }: Pick<Terminal, 'err'>,
  isWanted: (level: Level) => boolean,
  hide: (text: string) => string,
  isColored: boolean,
): Lines {
  const paint = painter(isColored)
  return {
    observe: (access) => {
      if (!isWanted(levelOf(access))) return
      const { status } = access
      const color =
        status >= 500 ? 'red' : status >= 400 && status !== 402 ? 'yellow' : status === 402 ? 'grey' : 'green'
      err(`${paint(color, String(status))}  ${hide(shortLine(access))}`)
    },
    line: ({ level, event, message }) => {
      // Standard output says it, too.
      if (event !== 'listening')
        err(paint(level === 'error' ? 'red' : level === 'warn' ? 'yellow' : undefined, hide(message)))
    },
    close: async () => undefined,
  }
}

async function linesForPrograms(
  isWanted: (level: Level) => boolean,
  hide: (text: string) => string,
  err: (line: string) => void,
  writer: LogSettings['writer'],
): Promise<Lines> {
  const { write, writeNow, close } = await openStderr(
    err,
    writer === 'alone' ? TOGETHER_BYTES : IN_ONE_PIECE_BYTES,
  )
  const time = isoTime()
  // A line of pino's own costs a tenth of an unpaid answer: what repeats is written out once, and there are no more kinds
  // of lines than the catalog allows.
  const kinds = new Map<string, Kind[]>()
  const observe = (access: AccessRecord): void => {
    const { place, ms, payment, detail, requestId } = access
    let known = kinds.get(place)
    if (known === undefined) kinds.set(place, (known = []))
    let kind = known.find(({ like }) => isLike(like, access))
    if (kind === undefined) {
      kind = { like: access, begin: isWanted(levelOf(access)) ? repeated(access) : undefined }
      known.push(kind)
    }
    if (kind.begin === undefined) return
    const paid = payment === undefined ? '' : `,"payment":${JSON.stringify(payment)}`
    const why = detail === undefined ? '' : `,"detail":${asciiJson(hide(detail).slice(0, LONGEST_DETAIL))}`
    write(kind.begin, `,"ms":${ms}${paid}${why},"requestId":"${requestId}","time":"${time()}"}\n`)
  }
  return {
    observe,
    line: ({ level, event, message, fields }) =>
      writeNow(hide(JSON.stringify({ level, event, message, ...fields, time: time() }))),
    close,
  }
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
    one.price === other.price &&
    one.customer === other.customer &&
    one.cause === other.cause
  )
}

/**
 * Writes lines of two parts, many at a time. They become bytes at once: text that is strung together and kept for a while
 * costs more than all the rest. All lines take the same way, so that none is written into another.
 */
async function openStderr(
  err: (line: string) => void,
  together: number,
): Promise<
  Pick<Log, 'close'> & {
    readonly write: (begin: Buffer, end: string) => void
    readonly writeNow: (line: string) => void
  }
> {
  const { pino } = await import('pino')
  const destination = pino.destination({
    fd: STDERR,
    sync: false,
    maxLength: KEPT_BYTES,
    maxWrite: together,
  })
  destination.on('error', () => undefined)
  const page = Buffer.allocUnsafe(together)
  let used = 0
  let isOpen = true
  const turn = (): void => {
    if (used > 0) destination.write(page.toString('utf8', 0, used))
    used = 0
  }
  setInterval(turn, FLUSH_MS).unref()
  // Lets pino write the remaining lines at every end of the process except SIGKILL.
  process.prependListener('exit', turn)
  return {
    write: (begin, end) => {
      if (used + begin.length + LONGEST_END > together) turn()
      used += begin.copy(page, used)
      used += page.write(end, used, 'latin1')
    },
    writeNow: (line) => {
      if (!isOpen) return err(line)
      turn()
      destination.write(`${line}\n`)
    },
    // A write that is under way when the process exits is lost.
    close: () =>
      new Promise((resolve) => {
        turn()
        isOpen = false
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

/** Bugs are errors; failing sources and unacceptable payments are warnings. */
function levelOf({ status, outcome }: AccessRecord): Level {
  if (outcome === 'internal') return 'error'
  return status >= 500 ? 'warn' : 'info'
}

/** All of a line but its end. */
function repeated(access: AccessRecord): Buffer {
  const { place, method, status, outcome, price, cached, customer, cause } = access
  const fields = {
    level: levelOf(access),
    method,
    route: place,
    status,
    outcome,
    ...(cause === undefined ? {} : { cause }),
    ...(price === undefined ? {} : { price: formatShort(price) }),
    ...(cached === undefined ? {} : { cache: cached ? 'hit' : 'miss' }),
    ...(customer === undefined ? {} : { customer }),
  }
  return Buffer.from(JSON.stringify(fields).slice(0, -1))
}

function shortLine(access: AccessRecord): string {
  const { place, method, outcome, detail, cause, price, cached, customer, ms, payment, requestId } = access
  const words = [
    method,
    place,
    outcome === 'ok' ? '' : ERRORS[outcome].title.toLowerCase(),
    detail === undefined ? '' : `(${detail}${cause === undefined ? '' : `: ${cause}`})`,
    price === undefined ? '' : `$${formatShort(price)}`,
    cached === true ? 'cached' : '',
    `${ms} ms`,
    payment ?? '',
    customer ?? '',
    // The request id of a failure leads to its other lines.
    outcome === 'ok' || outcome === 'payment_required' ? '' : requestId,
  ]
  return words.filter((word) => word !== '').join('  ')
}

/** Interval in which the same error is reported once: an unreachable store fails every request. */
const QUIET_MS = 30_000

/**
 * Reports errors outside of requests to the operator: bugs with their stack, others in one sentence. `hide` removes
 * addresses and keys that libraries and handlers put into their messages.
 */
export function createErrorReporter(
  write: (event: LogEvent) => void,
  now: () => number,
  hide: (text: string) => string,
): (fault: unknown) => void {
  const reportedAt = new Map<string, number>()
  return (fault) => {
    const message = hide(
      fault instanceof LedgerError
        ? `ledger: ${fault.message}`
        : fault instanceof Failure || fault instanceof CatalogError
          ? fault.message
          : `unexpected: ${stackOf(fault)}`,
    )
    for (const [line, at] of reportedAt) if (now() - at >= QUIET_MS) reportedAt.delete(line)
    if (reportedAt.has(message)) return
    reportedAt.set(message, now())
    const code = fault instanceof Failure ? { code: fault.code } : {}
    const event = fault instanceof CatalogError ? 'reload_refused' : 'fault'
    write({ level: 'error', event, message, fields: { ...code, ...causeOf(fault) } })
  }
}

function stackOf(fault: unknown): string {
  if (fault instanceof Error) return fault.stack ?? fault.message
  // An error of another thread is an instance of another class.
  const message = typeof fault === 'object' && fault !== null && 'message' in fault ? fault.message : fault
  return String(message)
}

/** The messages of the causes of an error. */
function causeOf(fault: unknown): JsonObject {
  if (!(fault instanceof Error) || fault.cause === undefined) return {}
  if (fault.cause instanceof Error) return { cause: fault.cause.message }
  return typeof fault.cause === 'string' ? { cause: fault.cause } : {}
}
