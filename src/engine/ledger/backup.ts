import { createHash } from 'node:crypto'
import { isJsonObject, parseJson } from '../base/json.ts'
import type { Ledger } from './ledger.ts'
import { COPY, type SchemeState } from './scheme-state.ts'
import type { PaymentRecord } from './payment-record.ts'
import { decodeRecord, encodeRecord, FORMAT } from './record-codec.ts'

/** A backup that cannot be restored; nothing of it has been. The message says what to do. */
export class BackupError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BackupError'
  }
}

/** First line of a backup. */
interface BackupHead {
  /** Format of the records: see `FORMAT`. */
  readonly ratecard_ledger: number
  /** Version of the program that has written it. */
  readonly written_by: string
  /** ISO 8601. */
  readonly written_at: string
}

/**
 * The lines of a backup: a head, one record a line, oldest first, one state of a scheme a line, and a last line with their
 * numbers and the SHA-256 of all lines before it, by which a torn file is recognised. Each record is read whole; servers
 * may use the ledger meanwhile. Answers are not part of it.
 */
export async function* backupLines(
  ledger: Pick<Ledger, 'records' | 'states'>,
  { version, now }: { readonly version: string; readonly now: number },
): AsyncGenerator<string> {
  const digest = createHash('sha256')
  const head: BackupHead = {
    ratecard_ledger: FORMAT,
    written_by: version,
    written_at: new Date(now).toISOString(),
  }
  const first = JSON.stringify(head)
  digest.update(`${first}\n`)
  yield first
  let records = 0
  for await (const record of ledger.records()) {
    const line = encodeRecord(record)
    digest.update(`${line}\n`)
    records += 1
    yield line
  }
  let states = 0
  for await (const { name, text } of ledger.states.list('')) {
    // What was read from a chain may have changed until it is restored.
    if (name.includes(COPY)) continue
    const line = JSON.stringify({ state: name, text })
    digest.update(`${line}\n`)
    states += 1
    yield line
  }
  yield JSON.stringify({ records, ...(states > 0 && { states }), sha256: digest.digest('hex') })
}

/** Reads a backup to its end; throws `BackupError` when it is torn, altered, or of another format. */
export async function verifyBackup(
  name: string,
  lines: AsyncIterable<string>,
): Promise<{ readonly records: number }> {
  const digest = createHash('sha256')
  let [count, last, states] = [0, '', 0]
  for await (const line of lines) {
    if (count === 0) checkHead(name, line)
    // The last line is the digest of those before it.
    else digest.update(`${last}\n`)
    if (isState(line)) states += 1
    last = line
    count += 1
  }
  const records = count - 2 - states
  const tail = parseJson(last)
  const isComplete =
    isJsonObject(tail) &&
    tail['records'] === records &&
    (tail['states'] ?? 0) === states &&
    tail['sha256'] === digest.digest('hex')
  if (!isComplete)
    throw new BackupError(
      `${name} is not complete, or was changed after it was written: nothing was restored; take another backup`,
    )
  return { records }
}

function checkHead(name: string, line: string): void {
  const head = parseJson(line)
  const format = isJsonObject(head) ? head['ratecard_ledger'] : undefined
  if (!isJsonObject(head) || typeof format !== 'number')
    throw new BackupError(`${name} is no backup of a ledger: "ratecard ledger backup" writes one`)
  if (format === FORMAT) return
  const writer = typeof head['written_by'] === 'string' ? head['written_by'] : 'the version'
  throw new BackupError(
    `${name} has records of format ${format}, this version reads format ${FORMAT}: restore it with ratecard ${writer}, which has written it; nothing was restored`,
  )
}

/** The records of a backup that was verified. */
export async function* backupRecords(lines: AsyncIterable<string>): AsyncGenerator<PaymentRecord> {
  for await (const line of linesBetween(lines)) if (!isState(line)) yield decodeRecord(line)
}

/** What schemes have kept, of a backup that was verified. */
export async function* backupStates(
  lines: AsyncIterable<string>,
): AsyncGenerator<Pick<SchemeState, 'name' | 'text'>> {
  for await (const line of linesBetween(lines)) {
    const found = isState(line) ? parseJson(line) : undefined
    const { state: name, text } = isJsonObject(found) ? found : {}
    if (typeof name === 'string' && typeof text === 'string') yield { name, text }
  }
}

function isState(line: string): boolean {
  return line.startsWith('{"state":')
}

async function* linesBetween(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let ahead: string | undefined
  let isHead = true
  for await (const line of lines) {
    // Neither the first line nor the last one.
    if (ahead !== undefined && !isHead) yield ahead
    if (ahead !== undefined) isHead = false
    ahead = line
  }
}
