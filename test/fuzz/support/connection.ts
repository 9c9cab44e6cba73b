import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { dial } from '../../support/http.ts'

export interface Answer {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Header lines that could not be parsed. */
  readonly broken: readonly string[]
  readonly body: string
}

/** Longer than any valid answer takes here: a slower server hangs. */
const PATIENCE_MS = 20_000

/**
 * A connection that is kept for many requests, written by hand: what no client library would send is sent as it is.
 * The server may close it at any answer; the next request then opens another.
 */
export class Connection {
  readonly #url: string
  #socket: Socket | undefined

  constructor(url: string) {
    this.#url = url
  }

  /** Sends one request and reads its answer. Rejects when none arrives in time, or an invalid one. */
  async ask(request: Buffer, method = 'GET'): Promise<Answer> {
    const socket = this.#socket ?? (await dial(this.#url))
    this.#socket = socket
    const chunks: Buffer[] = []
    const reading = new Promise<Answer>((resolve, reject) => {
      const take = (chunk: Buffer): void => {
        chunks.push(chunk)
        const read = readAnswer(Buffer.concat(chunks), method)
        if (read !== undefined) done(() => resolve(read.answer))
      }
      const end = (): void => {
        const said = Buffer.concat(chunks).toString('latin1')
        done(() => reject(new Error(`the connection was closed after ${JSON.stringify(said)}`)))
      }
      const late = setTimeout(() => {
        done(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)))
        socket.destroy()
      }, PATIENCE_MS)
      const done = (settle: () => void): void => {
        clearTimeout(late)
        socket.off('data', take).off('close', end)
        settle()
      }
      socket.on('data', take).once('close', end)
    })
    socket.write(request)
    try {
      const answer = await reading
      if (closes(answer)) this.close()
      return answer
    } catch (fault) {
      this.close()
      throw fault
    }
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }
}

/** Sends bytes, half-closes the connection, and reads every answer until the server ends or resets it. */
export async function flood(url: string, bytes: Buffer): Promise<readonly Answer[]> {
  const socket = await dial(url)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = new Promise<'in time'>((resolve) => socket.once('close', () => resolve('in time')))
  socket.end(bytes)
  const timer = new AbortController()
  const late = sleep(PATIENCE_MS, 'late' as const, { signal: timer.signal }).catch(() => 'in time' as const)
  const ended = await Promise.race([closed, late])
  timer.abort()
  socket.destroy()
  if (ended === 'late') throw new Error(`the connection was not closed within ${PATIENCE_MS} ms`)
  return readAll(Buffer.concat(chunks))
}

function closes({ headers }: Answer): boolean {
  return headers.some(([name, value]) => name === 'connection' && value === 'close')
}

function readAll(bytes: Buffer): Answer[] {
  const answers: Answer[] = []
  let rest = bytes
  while (rest.length > 0) {
    const read = readAnswer(rest, 'GET')
    if (read === undefined) throw new Error(`no HTTP answer: ${JSON.stringify(rest.toString('latin1'))}`)
    answers.push(read.answer)
    rest = rest.subarray(read.length)
  }
  return answers
}

/** The first answer in some bytes and its length; undefined while it is incomplete. */
function readAnswer(
  bytes: Buffer,
  method: string,
): { readonly answer: Answer; readonly length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [line = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
  if (Number.isNaN(status)) throw new Error(`no status line: ${JSON.stringify(line)}`)
  const headers: (readonly [string, string])[] = []
  const broken: string[] = []
  for (const each of lines) {
    const [, name = '', value = ''] = /^([\w-]+): ([\t\x20-\x7e]*)$/.exec(each) ?? []
    if (name === '') broken.push(each)
    else headers.push([name.toLowerCase(), value])
  }
  const empty = method === 'HEAD' || status < 200 || status === 204 || status === 304
  const length = empty ? 0 : bodyLength(headers)
  const start = end + 4
  if (bytes.length < start + length) return undefined
  const body = bytes.toString('utf8', start, start + length)
  return { answer: { status, headers, broken, body }, length: start + length }
}

function bodyLength(headers: Answer['headers']): number {
  const [, value] = headers.find(([name]) => name === 'content-length') ?? []
  if (value === undefined || !/^\d+$/.test(value)) throw new Error('an answer does not say its length')
  return Number(value)
}
