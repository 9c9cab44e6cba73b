import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { describeExit } from '../exit.ts'
import { listening } from '../http.ts'

/** Debian keeps several next to each other, and none in the path. */
const DEBIAN = '/usr/lib/postgresql'

function programs(): string | undefined {
  const versions = existsSync(DEBIAN)
    ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin'))
    : []
  const given = (process.env['PATH'] ?? '').split(':')
  return [...versions, ...given].find((directory) => existsSync(join(directory, 'postgres')))
}

/** Why tests with PostgreSQL are skipped here; undefined when they run. */
export function postgresAbsence(): string | undefined {
  const directory = programs()
  if (directory === undefined) return 'there is no PostgreSQL on this machine'
  const { stdout } = spawnSync(join(directory, 'pg_config'), ['--sharedir'], { encoding: 'utf8' })
  const control = join((stdout ?? '').trim(), 'extension', 'vector.control')
  return existsSync(control)
    ? undefined
    : `the PostgreSQL in ${directory} has no pgvector (Debian 13, Ubuntu 24.04: apt-get install postgresql-NN-pgvector)`
}

interface RunningPostgres {
  readonly url: string
  stop(): Promise<void>
}

/** It does not run as root; this user owns nothing. */
const NOBODY = 65_534

/** Starts a PostgreSQL of its own on a free port, with files of its own. */
export async function startPostgres(): Promise<RunningPostgres> {
  const bin = programs()
  if (bin === undefined) throw new Error('there is no PostgreSQL')
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-postgres-'))
  const asNobody = process.getuid?.() === 0
  if (asNobody) chownSync(directory, NOBODY, NOBODY)
  const user = { ...(asNobody ? { uid: NOBODY, gid: NOBODY } : {}), cwd: directory }
  const files = join(directory, 'data')
  const made = spawnSync(
    join(bin, 'initdb'),
    ['-D', files, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'],
    user,
  )
  if (made.status !== 0) throw new Error(`initdb: ${String(made.stderr)}`)
  const { url, close } = await listening(createHttpServer())
  await close()
  const { port } = new URL(url)
  const settings = ['-p', port, '-k', directory, '-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off']
  const child = spawn(join(bin, 'postgres'), ['-D', files, ...settings], {
    ...user,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const end = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', end)
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk) => /ready to accept connections/.test(String(chunk)) && resolve())
    child.once('exit', (code, signal) => reject(new Error(`PostgreSQL ${describeExit(code, signal)}`)))
  })
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      process.off('exit', end)
      const exited = once(child, 'exit')
      child.kill('SIGINT')
      await exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

interface WiredDatabase {
  /** For a client of PostgreSQL. */
  readonly url: string
  stop(): Promise<void>
}

/** `SSLRequest`, PostgreSQL protocol 3.0. */
const SSL_REQUEST = 80_877_103
const [SYNC, QUERY, TERMINATE] = [0x53, 0x51, 0x58]

/**
 * PostgreSQL with pgvector where there is none: the embedded one behind the wire protocol, for any number of connections.
 * It has one session, so the connections take turns, each for one statement.
 */
export async function wireDatabase(): Promise<WiredDatabase> {
  const database = await PGlite.create({ extensions: { vector } })
  let turn: Promise<void> = Promise.resolve()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    const take = statements((statement) => {
      turn = turn.then(async () => {
        socket.write(await database.execProtocolRaw(statement))
      })
    }, socket)
    socket.on('data', take)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await turn
      await database.close()
    },
  }
}

/** Splits a stream into units that the server answers as a whole: up to a sync or a simple query. */
function statements(carryOut: (statement: Buffer) => void, socket: Socket): (chunk: Buffer) => void {
  let [rest, begun] = [Buffer.alloc(0), false]
  let frames: Buffer[] = []
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = begun ? 1 : 0
      const length = rest.length < head + 4 ? Infinity : rest.readUInt32BE(head) + head
      if (rest.length < length) return
      const frame = rest.subarray(0, length)
      rest = rest.subarray(length)
      if (begun && frame[0] === TERMINATE) return void socket.end()
      if (!begun && frame.readUInt32BE(4) === SSL_REQUEST) {
        socket.write('N')
        continue
      }
      frames.push(frame)
      if (!begun || frame[0] === SYNC || frame[0] === QUERY) {
        carryOut(Buffer.concat(frames))
        frames = []
      }
      begun = true
    }
  }
}
