import { ERRORS, formatShort, type Access, type Observe } from '../engine/index.ts'
import type { Env } from '../env.ts'
import type { Terminal } from './command.ts'

/** Lines are written together, or after so long. */
const TOGETHER_BYTES = 16_000
const FLUSH_MS = 500
/** Kept for a reader who does not read; what comes then is lost: a log must not stop a service, nor fill its memory. */
const KEPT_BYTES = 16 * 1024 * 1024

const STDERR = 2

/**
 * One line a request on stderr: JSON for a program, a short one for a person. Undefined at LOG_LEVEL=silent. What a line
 * holds is in `Access`: nothing that was asked, sent or paid with.
 */
export async function openLog(
  level: Env['logLevel'],
  { err, logReader }: Pick<Terminal, 'err' | 'logReader'>,
): Promise<Observe | undefined> {
  if (level === 'silent') return undefined
  const wanted = LEVELS.slice(LEVELS.indexOf(level))
  if (logReader === 'person')
    return (access) => {
      if (wanted.includes(levelOf(access))) err(shortLine(access))
    }
  const { pino } = await import('pino')
  const destination = pino.destination({
    fd: STDERR,
    // Written to the last line when the process ends, whatever ends it but SIGKILL: pino sees to that.
    sync: false,
    minLength: TOGETHER_BYTES,
    periodicFlush: FLUSH_MS,
    maxLength: KEPT_BYTES,
  })
  destination.on('error', () => undefined)
  const logger = pino(
    {
      level,
      base: null,
      timestamp: isoTime(),
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  )
  // What repeats is written out once: a third of the time of a whole line, and there are as many as the catalog allows.
  const kinds = new Map<string, ReturnType<typeof logger.child>>()
  return (access) => {
    const { method, place, status, outcome, price, cached, ms, payment } = access
    const name = `${method} ${place} ${status} ${outcome} ${price} ${cached}`
    let kind = kinds.get(name)
    if (kind === undefined) {
      kind = logger.child(repeated(access))
      kinds.set(name, kind)
    }
    kind[levelOf(access)](payment === undefined ? { ms } : { ms, payment })
  }
}

/** Many requests come within a millisecond: its name is spelled once. */
function isoTime(): () => string {
  let last = 0
  let spelled = ''
  return () => {
    const now = Date.now()
    if (now !== last) spelled = `,"time":"${new Date(now).toISOString()}"`
    last = now
    return spelled
  }
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Mistakes of ours are errors; sources that fail and payments that cannot be taken are warnings. */
function levelOf({ status, outcome }: Access): 'info' | 'warn' | 'error' {
  if (outcome === 'internal') return 'error'
  return status >= 500 ? 'warn' : 'info'
}

function repeated({ place, method, status, outcome, price, cached }: Access): Record<string, unknown> {
  return {
    method,
    route: place,
    status,
    outcome,
    ...(price === undefined ? {} : { price: formatShort(price) }),
    ...(cached === undefined ? {} : { cache: cached ? 'hit' : 'miss' }),
  }
}

function shortLine({ place, method, status, outcome, price, cached, ms, payment }: Access): string {
  const words = [
    String(status),
    method,
    place,
    outcome === 'ok' ? '' : ERRORS[outcome].title.toLowerCase(),
    price === undefined ? '' : `$${formatShort(price)}`,
    cached === true ? 'cached' : '',
    `${ms} ms`,
    payment ?? '',
  ]
  return words.filter((word) => word !== '').join('  ')
}
