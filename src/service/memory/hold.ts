import { readFileSync, readlinkSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { StoreRefusal } from './database.ts'

/** A directory that is held for this process alone. */
export interface Hold {
  /** Whether it is still held: a process that was suspended for long may have been taken for dead. */
  readonly held: () => boolean
  release(): void
}

/** The holder shows this often that it lives. */
const BEAT_MS = 2_000
/** A holder whose process cannot be seen from here and that has shown nothing for this long is dead. */
const SILENCE_MS = 10_000
const TURN_MS = 50

/**
 * Holds a directory by a file that names the process. Throws `StoreRefusal` when a living process holds it; what a dead one
 * has left is taken over. A holder in another container, or before the last start of the machine, is known by its beat
 * alone, which takes ten seconds.
 */
export async function hold(file: string): Promise<Hold> {
  const holder = `${process.pid} ${startOf(process.pid)} ${where()}\n`
  while (!created(file, holder)) {
    const found = read(file)
    if (found === undefined) continue
    if (await lives(file, found, holder)) throw new StoreRefusal(refusal(file, found))
    await removeStale(file, found)
  }
  const held = (): boolean => read(file) === holder
  const beat = setInterval(() => {
    if (held()) utimesSync(file, new Date(), new Date())
  }, BEAT_MS)
  beat.unref()
  return {
    held,
    release: () => {
      clearInterval(beat)
      if (held()) rmSync(file, { force: true })
    },
  }
}

function created(file: string, holder: string): boolean {
  try {
    writeFileSync(file, holder, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false
    throw error
  }
}

/** Numbers of processes repeat: in every container, and after a restart. Time of start and place tell them apart. */
async function lives(file: string, found: string, holder: string): Promise<boolean> {
  if (found === holder) return true
  const [pid = '', start, place] = found.trim().split(' ')
  if (place === where()) return startOf(Number(pid)) === start && start !== undefined
  const seen = beatOf(file)
  for (let waited = 0; waited < SILENCE_MS; waited += BEAT_MS / 2) {
    await delay(BEAT_MS / 2)
    if (beatOf(file) !== seen) return true
  }
  return false
}

/** The machine since its last start, and what of it this process can see. */
function where(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

/** Start time of a process in ticks; undefined when there is none. Outside of Linux, only whether it runs. */
function startOf(pid: number): string | undefined {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (isCode(error, 'ESRCH')) return undefined
  }
  try {
    // The name of the program is in parentheses and may hold anything.
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')[19]
  } catch {
    return 'alive'
  }
}

/**
 * Two processes may find the same stale file: one at a time removes it, and only the very file it has judged, not the one
 * that another has made meanwhile.
 */
async function removeStale(file: string, found: string): Promise<void> {
  const turn = `${file}.turn`
  for (let tries = 0; !created(turn, `${process.pid}\n`); tries += 1) {
    if (tries * TURN_MS >= SILENCE_MS)
      throw new StoreRefusal(`a process has died while it opened the memory store: delete ${turn}`)
    await delay(TURN_MS)
  }
  if (read(file) === found) rmSync(file, { force: true })
  rmSync(turn, { force: true })
}

function refusal(file: string, found: string): string {
  return (
    `the memory store is open in another process (${found.split(' ')[0] ?? ''}), and its files belong to one alone. ` +
    `Stop that process, or set DATABASE_URL to a PostgreSQL with pgvector, which several share. ` +
    `If no such process is running, delete ${file}`
  )
}

function beatOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
